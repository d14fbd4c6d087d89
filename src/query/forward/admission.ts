/**
 * Admission: limits on queries in flight, over all containers, and on the bytes of each container. A container with few
 * queries in flight is always admitted, whatever others do.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Client } from "../client/client.ts";

export class Admission {
  readonly #queriesMax: number;
  #inFlight = 0;

  constructor(queriesMax: number) {
    this.#queriesMax = queriesMax;
  }

  /** Queries without an answer yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Admits a query of `bytes` bytes; returns what it holds of the container's share, or 0 if it must be refused. */
  admit(client: Client, bytes: number): number {
    const isFull = this.#inFlight >= this.#queriesMax && client.slots.held >= LIMITS.forwardQueriesAlways;
    this.#inFlight++;
    return !isFull && client.shares.queryBytes.take(bytes) ? bytes : 0;
  }

  /** The query has its answer, even if that is a refusal. */
  release(client: Client, heldBytes: number): void {
    this.#inFlight--;
    client.shares.queryBytes.give(heldBytes);
  }
}
