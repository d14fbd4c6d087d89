/**
 * HangGuard: ends a process that hangs, because only its death hands the namespaces back. It re-arms a kernel alarm
 * every second. An event loop that no longer gets to re-arming it is killed by SIGALRM, and the owned tables go with
 * the process.
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

  /** The alarm stays armed: shutdown has to finish as well, even where nothing reads the log. */
  stop(): void {
    clearInterval(this.#timer);
    alarm(LIMITS.hangSeconds);
  }
}
