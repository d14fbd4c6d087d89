/**
 * Admission: which queries may be on their way upstream at all. What all containers together have under way is bounded,
 * and so are the bytes of each; a container that has little under way is let in all the same, whatever others do.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Client } from "../client/client.ts";

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
  admit(client: Client, bytes: number): number {
    const isFull = this.#inFlight >= this.#queriesMax && client.slots.held >= LIMITS.forwardQueriesAlways;
    this.#inFlight++;
    return !isFull && client.shares.queryBytes.take(bytes) ? bytes : 0;
  }

  /** It has its answer, be it a refusal. */
  release(client: Client, heldBytes: number): void {
    this.#inFlight--;
    client.shares.queryBytes.give(heldBytes);
  }
}
