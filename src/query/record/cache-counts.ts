/**
 * CacheCounts: counters of the cache. They never decrease, even when new settings replace the cache.
 */
export interface CacheCounts {
  /** Answered from a fresh entry: with records, or with a negative answer. */
  hits: number;
  denials: number;
  misses: number;
  /** Stale answers, served because all servers failed. */
  stale: number;
  /** Answered SERVFAIL at once, because all servers had just failed. */
  failures: number;
  /** Refreshed before expiry. */
  prefetches: number;
  /** Removed to make room. */
  evictions: number;
}

export function newCacheCounts(): CacheCounts {
  return { hits: 0, denials: 0, misses: 0, stale: 0, failures: 0, prefetches: 0, evictions: 0 };
}
