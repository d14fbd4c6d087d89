/**
 * Cache: what is kept of what servers said, and what use it was, as `GET /v1/cache` tells it.
 */

export interface CacheOfContainer {
  /** null: containers that are gone, whose replies serve others. */
  readonly container: string | null;
  readonly entries: number;
  readonly bytes: number;
  /** Queries answered from what is kept, since it is attached. */
  readonly hits: number;
}

export interface CacheReport {
  readonly isCaching: boolean;
  readonly entries: number;
  readonly bytes: number;
  readonly bytesMax: number;
  readonly hits: number;
  readonly misses: number;
  readonly stale: number;
  /** Failures that were told again without asking anew. */
  readonly failures: number;
  readonly prefetches: number;
  readonly evictions: number;
  readonly containers: readonly CacheOfContainer[];
}

export interface FlushReport {
  readonly isCaching: boolean;
  readonly name: string | null;
  readonly replies: number;
  /** Questions on their way, whose replies will not be kept. */
  readonly inFlight: number;
}
