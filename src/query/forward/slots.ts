/**
 * How much one container may ask upstream at once. A noisy container fills its own slots and its own waiting room, and
 * nobody else's.
 */
import { LIMITS } from "../../config/limits.ts";

interface Waiting {
  readonly begin: () => void;
  readonly refuse: () => void;
  readonly timer: NodeJS.Timeout;
}

export class Slots {
  #taken = 0;
  readonly #waiting = new Set<Waiting>();

  get taken(): number {
    return this.#taken;
  }

  /** Calls `begin` when there is a slot, at once if possible; `refuse` if there is none in time. */
  take(begin: () => void, refuse: () => void): void {
    if (this.#taken < LIMITS.forwardSlots) {
      this.#taken++;
      begin();
      return;
    }
    if (this.#waiting.size >= LIMITS.forwardWaiting) {
      refuse();
      return;
    }
    const waiting: Waiting = {
      begin,
      refuse,
      timer: setTimeout(() => {
        this.#waiting.delete(waiting);
        refuse();
      }, LIMITS.forwardWaitMs),
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
    queueMicrotask(next.begin);
  }
}
