/**
 * HangGuard: ends a process that hangs, because only its death hands the namespaces back. It re-arms a kernel alarm
 * every second. An event loop that no longer gets to re-arming it is killed by SIGALRM, and the owned tables go with
 * the process.
 *
 * The alarm counts all time, including time in which a busy machine gives the process no processor. A keeper does better, so beside one
 * the alarm is for the case that the keeper is lost at the same time.
 */
import { LIMITS } from "../base/limits.ts";
import { alarm } from "../kernel/libc.ts";

const REARM_MS = 1_000;

export interface HangGuardParts {
  /** Whether a keeper watches this process. */
  readonly isWatched: () => boolean;
  /** Requests the end of this process in so many seconds, in place of the last request. */
  readonly arm?: (seconds: number) => void;
}

export class HangGuard {
  readonly #isWatched: () => boolean;
  readonly #arm: (seconds: number) => void;
  readonly #timer: NodeJS.Timeout;

  constructor({ isWatched, arm = alarm }: HangGuardParts) {
    this.#isWatched = isWatched;
    this.#arm = arm;
    this.#rearm();
    this.#timer = setInterval(() => this.#rearm(), REARM_MS);
    this.#timer.unref();
  }

  /** The alarm stays armed: shutdown has to finish as well, even where nothing reads the log. */
  stop(): void {
    clearInterval(this.#timer);
    this.#rearm();
  }

  #rearm(): void {
    this.#arm(this.#isWatched() ? LIMITS.watchedHangSeconds : LIMITS.hangSeconds);
  }
}
