/**
 * Pulse: whether the main process still comes round to saying so. Only time in which it could have spoken counts. While it
 * waits for a processor that others have, it is not its fault; while somebody looks into it with a debugger, silence is
 * what they want; and when the keeper itself, or the whole machine, stood still, nobody was listening.
 */
import { KEEPER_LIMITS } from "./limits.ts";
import type { ThreadState } from "../kernel/process.ts";

export class Heartbeat {
  readonly #stateOf: () => ThreadState | undefined;
  #silentMs = 0;
  #ranMs: number | undefined;
  #lookedMs: number;

  /** `stateOf` tells what the main process is at. */
  constructor(nowMs: number, stateOf: () => ThreadState | undefined) {
    this.#lookedMs = nowMs;
    this.#stateOf = stateOf;
  }

  beat(nowMs: number): void {
    this.#lookedMs = nowMs;
    this.#silentMs = 0;
    this.#ranMs = undefined;
  }

  /** Until the next beat it may be silent for so much longer. */
  allowSilence(ms: number): void {
    this.#silentMs = -ms;
  }

  /** Whether it has had its time, and said nothing. */
  check(nowMs: number): boolean {
    const passedMs = Math.min(nowMs - this.#lookedMs, KEEPER_LIMITS.lookMs * 2);
    this.#lookedMs = nowMs;
    this.#silentMs += this.#chanceMs(passedMs);
    return this.#silentMs >= KEEPER_LIMITS.silentMs;
  }

  #chanceMs(passedMs: number): number {
    const state = this.#stateOf();
    const before = this.#ranMs;
    this.#ranMs = state?.ranMs;
    if (state === undefined) return passedMs;
    if (state.isTraced) return 0;
    // The first look has nothing to compare with.
    if (state.letter === "R" && state.ranMs !== undefined) {
      return before === undefined ? 0 : Math.min(passedMs, state.ranMs - before);
    }
    return passedMs;
  }
}
