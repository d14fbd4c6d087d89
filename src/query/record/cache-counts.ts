/**
 * CacheCounts: what use it was to keep replies. Numbers that never fall, also where settings exchange the cache.
 */
export interface CacheCounts {
  /** Answered from a reply that was kept and good: with what was asked for, or with a denial. */
  hits: number;
  denials: number;
  misses: number;
  /** A reply that was over stood in for servers that failed. */
  stale: number;
  /** Failed at once, because all servers had just failed. */
  failures: number;
  /** Asked anew before anybody waited. */
  prefetches: number;
  /** Had to make room. */
  evictions: number;
}

export function newCacheCounts(): CacheCounts {
  return { hits: 0, denials: 0, misses: 0, stale: 0, failures: 0, prefetches: 0, evictions: 0 };
}
