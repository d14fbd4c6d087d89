/**
 * DebounceTimer: when to read a changed file. A writer usually does several things to a file, so it is read when it has
 * been quiet for a moment, but not later than a maximum after the first change; and not again before that time has passed.
 */
import { LIMITS } from "../../base/limits.ts";

export class DebounceTimer {
  readonly #onTimeout: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** The time of the first change that has not been read. */
  #eventMs: number | undefined;
  #readMs = -Infinity;

  constructor(onTimeout: () => void) {
    this.#onTimeout = onTimeout;
  }

  /** Reports a change. */
  trigger(): void {
    const nowMs = performance.now();
    this.#eventMs ??= nowMs;
    const leftMs = this.#eventMs + LIMITS.hostFileBusyMs - nowMs;
    const againMs = this.#readMs + LIMITS.hostFileBusyMs - nowMs;
    this.runAfter(Math.max(0, againMs, Math.min(LIMITS.hostFileQuietMs, leftMs)));
  }

  runAfter(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onTimeout, ms);
    this.#timer.unref();
  }

  /** The file is read now: cancels the timer and forgets the changes. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#eventMs = undefined;
    this.#readMs = performance.now();
  }
}
