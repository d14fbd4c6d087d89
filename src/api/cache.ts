/**
 * Cache: statistics of the reply cache, as returned by `GET /v1/cache`, and its entries.
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
  /** Queries since dns11 started: answered from the cache, not in it, answered with an expired entry. */
  readonly hits: number;
  readonly misses: number;
  readonly stale: number;
  /** Cached failures returned without a new upstream query. */
  readonly failures: number;
  /** Entries refreshed before they expired, and removed because the cache was full. */
  readonly prefetches: number;
  readonly evictions: number;
  readonly containers: readonly CacheOfContainer[];
}

/** One cached reply. */
export interface CacheEntryReport {
  readonly name: string;
  readonly type: string;
  readonly rcode: string;
  /** The records of the answer, as text; at most 8. */
  readonly answers: readonly string[];
  /** Seconds until it expires; negative once it has. */
  readonly expiresInS: number;
  readonly bytes: number;
  /** The container whose query it was first; null if it is gone. */
  readonly container: string | null;
}

/** `GET /v1/cache/entries` returns it. */
export interface CacheEntriesReport {
  readonly isCaching: boolean;
  /** Sorted by name. */
  readonly entries: readonly CacheEntryReport[];
  /** Entries that match and are left out, because there are too many. */
  readonly omitted: number;
}

export interface FlushReport {
  readonly isCaching: boolean;
  /** null: everything. */
  readonly name: string | null;
  /** Entries that were removed. */
  readonly replies: number;
  /** In-flight queries whose replies will not be cached. */
  readonly inFlight: number;
}
