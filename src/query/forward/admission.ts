/**
 * Admission: which queries may be on their way upstream at all. What all containers together have under way is bounded,
 * and so are the bytes of each; a container that has little under way is let in all the same, whatever others do.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Asker } from "../asker/asker.ts";

export class Admission {
  readonly #queriesMax: number;
  #inFlight = 0;

  constructor(queriesMax: number) {
    this.#queriesMax = queriesMax;
  }

  /** Queries that have not been answered yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** A query of so many bytes: those that it holds of its container's share, or 0 where it is to be refused. */
  enter(asker: Asker, bytes: number): number {
    const isFull = this.#inFlight >= this.#queriesMax && asker.slots.held >= LIMITS.forwardQueriesAlways;
    this.#inFlight++;
    return !isFull && asker.shares.queryBytes.take(bytes) ? bytes : 0;
  }

  /** It has its answer, be it a refusal. */
  leave(asker: Asker, heldBytes: number): void {
    this.#inFlight--;
    asker.shares.queryBytes.give(heldBytes);
  }
}
