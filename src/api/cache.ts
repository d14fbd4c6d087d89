/**
 * Cache: statistics of the reply cache, as returned by `GET /v1/cache`.
 */

export interface CacheOfContainer {
  /** null for the entries of containers that are gone, which still serve others. */
  readonly container: string | null;
  readonly entries: number;
  readonly bytes: number;
  /** Queries answered from the cache since the container was attached. */
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
  /** Cached failures returned without a new upstream query. */
  readonly failures: number;
  readonly prefetches: number;
  readonly evictions: number;
  readonly containers: readonly CacheOfContainer[];
}

export interface FlushReport {
  readonly isCaching: boolean;
  readonly name: string | null;
  readonly replies: number;
  /** In-flight queries whose replies will not be cached. */
  readonly inFlight: number;
}
