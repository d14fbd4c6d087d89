/**
 * HangGuard: a hang is not a death, and only a death hands the namespaces back. The kernel is asked for an alarm, again
 * every second; an event loop that no longer comes round to asking is ended by it, and the owned tables go with it.
 */
import { LIMITS } from "../base/limits.ts";
import { alarm } from "../kernel/libc.ts";

const REARM_MS = 1_000;

export class HangGuard {
  readonly #timer: NodeJS.Timeout;

  constructor() {
    alarm(LIMITS.hangSeconds);
    this.#timer = setInterval(() => alarm(LIMITS.hangSeconds), REARM_MS);
    this.#timer.unref();
  }

  /** The alarm stays set: the way out must come to its end, too, also where somebody does not read our last words. */
  stop(): void {
    clearInterval(this.#timer);
    alarm(LIMITS.hangSeconds);
  }
}
