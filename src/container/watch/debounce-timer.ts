/**
 * NextLook: when a file is looked at next. Whoever writes one does several things to it, so what happens to it is looked
 * at when it has been quiet for a moment; but not put off for ever.
 */
import { LIMITS } from "../../base/limits.ts";

export class DebounceTimer {
  readonly #look: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** Since when something happens that has not been looked at. */
  #eventMs: number | undefined;

  constructor(look: () => void) {
    this.#look = look;
  }

  /** Something has happened. */
  trigger(): void {
    this.#eventMs ??= performance.now();
    const leftMs = this.#eventMs + LIMITS.hostFileBusyMs - performance.now();
    this.runAfter(Math.max(0, Math.min(LIMITS.hostFileQuietMs, leftMs)));
  }

  runAfter(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#look, ms);
    this.#timer.unref();
  }

  /** It is being looked at now, or never again. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#eventMs = undefined;
  }
}
