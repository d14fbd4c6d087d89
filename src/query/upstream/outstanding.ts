/**
 * Outstanding: the queries that a server has, in the order in which they were sent. The queries themselves are the links of a list,
 * because each query of a container that is not in the cache enters and leaves it.
 */

export interface OutstandingQuery {
  /** Sent before it, and after it; undefined at the ends of the list. */
  older: OutstandingQuery | undefined;
  newer: OutstandingQuery | undefined;
  isOutstanding: boolean;
}

export class Outstanding<Query extends OutstandingQuery> {
  #oldest: OutstandingQuery | undefined;
  #newest: OutstandingQuery | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get oldest(): Query | undefined {
    return this.#oldest as Query | undefined;
  }

  add(query: Query): void {
    query.isOutstanding = true;
    query.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = query;
    else this.#newest.newer = query;
    this.#newest = query;
    this.#size++;
  }

  /** Returns whether it was there. */
  delete(query: Query): boolean {
    if (!query.isOutstanding) return false;
    const { older, newer } = query;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    query.older = query.newer = undefined;
    query.isOutstanding = false;
    this.#size--;
    return true;
  }
}
