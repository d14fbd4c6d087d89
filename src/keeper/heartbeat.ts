/**
 * Heartbeat: whether the process at the other end of a channel still answers: the keeper asks it of the main process, and that of the
 * keeper. Only time in which it could have answered counts. Time in which it waits for a processor does not count, nor time under a
 * debugger, nor time in which whoever checks, or the whole machine, was suspended. Time in which it waits for the kernel counts little:
 * until all processors have moved on (RCU), for example. That is long on a busy machine, and killing it would not end the wait. For the
 * locks of containers neither waits: its other threads do.
 */
import { KEEPER_LIMITS } from "./limits.ts";
import type { ThreadState } from "../kernel/process.ts";

export class Heartbeat {
  readonly #stateOf: () => ThreadState | undefined;
  #silentMs = 0;
  #ranMs: number | undefined;
  #checkedMs: number;

  /** `stateOf` returns the state of its main thread. */
  constructor(nowMs: number, stateOf: () => ThreadState | undefined) {
    this.#checkedMs = nowMs;
    this.#stateOf = stateOf;
  }

  beat(nowMs: number): void {
    this.#checkedMs = nowMs;
    this.#silentMs = 0;
    this.#ranMs = undefined;
  }

  /** Adds the time since the last check; returns whether the process was silent for too long. */
  check(nowMs: number): boolean {
    const passedMs = Math.min(nowMs - this.#checkedMs, KEEPER_LIMITS.pollMs * 2);
    this.#checkedMs = nowMs;
    this.#silentMs += this.#runnableMs(passedMs);
    return this.#silentMs >= KEEPER_LIMITS.silentMs;
  }

  #runnableMs(passedMs: number): number {
    const state = this.#stateOf();
    const before = this.#ranMs;
    this.#ranMs = state?.ranMs;
    if (state === undefined) return passedMs;
    if (state.isTraced) return 0;
    // The first check has nothing to compare with.
    if (state.letter === "R" && state.ranMs !== undefined) {
      return before === undefined ? 0 : Math.min(passedMs, state.ranMs - before);
    }
    return state.letter === "D" ? passedMs / KEEPER_LIMITS.kernelWaitDivisor : passedMs;
  }
}
