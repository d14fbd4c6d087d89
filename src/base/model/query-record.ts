/**
 * AskedQuery: one query that a container asked and what became of it, as a ledger keeps it and readers get it; and what
 * settings say of keeping it.
 */

/** How a query was answered. */
export const QUERY_RESULTS = ["local", "cached", "stale", "forwarded", "refused", "failed"] as const;
export type QueryResult = (typeof QUERY_RESULTS)[number];

/** The same as a ledger notes it. */
export const QUERY_RESULT = {
  /** From the names of networks, or by rule. */
  local: 0,
  /** From what a server said before. */
  cached: 1,
  /** From what a server said before, which is over. */
  stale: 2,
  /** A server was asked. */
  forwarded: 3,
  /** dns11 would not work on it: it cannot be read, or too many are waiting. */
  refused: 4,
  /** No server gave a good answer. */
  failed: 5,
} as const satisfies Record<QueryResult, number>;

export interface QueryRecord {
  /** Grows by one a query; another life of the container, or of dns11, begins far above. */
  readonly seq: number;
  /** When it came, on the clock of `performance.now`. */
  readonly atMs: number;
  /** As it was asked, printable; null where names are hidden, or it had none that could be read. */
  readonly name: string | null;
  readonly type: number;
  readonly rcode: number;
  /** Records in the answer section, and the TTL of the first. */
  readonly answers: number;
  readonly ttl: number | null;
  readonly isStream: boolean;
  readonly result: QueryResult;
  /** Which server answered, where one was asked. */
  readonly upstream: string | null;
  /** From its arrival to its answer; 0 for what is answered at once, which nobody measures. */
  readonly tookMs: number;
}

/** Whether names are kept with what was asked, or nothing is kept at all. */
export const QUERY_NAMES = ["full", "hidden", "off"] as const;
export type QueryNames = (typeof QUERY_NAMES)[number];

export interface QueriesPolicy {
  readonly names: QueryNames;
  /** A line of the log for each query. */
  readonly isLogged: boolean;
}

export const QUERIES_DEFAULTS: QueriesPolicy = { names: "full", isLogged: false };
