/**
 * How much one container may ask upstream at once. A noisy container fills its own slots and its own waiting room, and
 * nobody else's.
 */
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";

interface WaitingQuery {
  readonly begin: () => void;
  readonly refuse: () => void;
  readonly timer: NodeJS.Timeout;
}

/** How many slots a container has; settings may change it while they are in use. */
export interface SlotLimit {
  readonly max: number;
  readonly waitMs: number;
}

const DOCKER_SLOT_LIMIT: SlotLimit = { max: LIMITS.forwardSlots, waitMs: LIMITS.forwardWaitMs };

export class Slots {
  readonly #limit: SlotLimit;
  #taken = 0;
  readonly #waiting = new Set<WaitingQuery>();

  constructor(limit: SlotLimit = DOCKER_SLOT_LIMIT) {
    this.#limit = limit;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Queries that have a slot, or wait for one. */
  get held(): number {
    return this.#taken + this.#waiting.size;
  }

  /** Takes a slot if one is free; whether there was one. */
  tryTake(): boolean {
    if (this.#taken >= this.#limit.max) return false;
    this.#taken++;
    return true;
  }

  /** Calls `begin` when there is a slot, at once if possible; `refuse` if there is none in time. */
  take(begin: () => void, refuse: () => void): void {
    if (this.tryTake()) {
      begin();
      return;
    }
    if (this.#waiting.size >= LIMITS.forwardWaiting) {
      refuse();
      return;
    }
    const waiting: WaitingQuery = {
      begin,
      refuse,
      timer: setTimeout(() => {
        this.#waiting.delete(waiting);
        guard.run("timer", 0, refuse);
      }, this.#limit.waitMs),
    };
    this.#waiting.add(waiting);
  }

  /** Gives a slot back, to whoever has waited longest. */
  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#taken--;
      return;
    }
    this.#waiting.delete(next);
    clearTimeout(next.timer);
    // Not from here: whoever fails at once gives its slot back at once, and a long queue would be a deep stack.
    guard.defer(0, next.begin);
  }
}
