/**
 * History: the last five minutes as samples, and the last day by the minute, as returned by `GET /v1/history`. All lists of samples have
 * the same length, at most 60, and end with the latest sample.
 */

/** Queries in each interval. */
export interface RateHistory {
  readonly queries: readonly number[];
  /** Counts by result. */
  readonly local: readonly number[];
  readonly cached: readonly number[];
  readonly forwarded: readonly number[];
  /** Counts by response code: NXDOMAIN, and errors such as SERVFAIL and REFUSED. */
  readonly nxdomain: readonly number[];
  readonly errors: readonly number[];
}

export interface ServerHistory {
  /** It is written as in `GET /v1/upstreams`. */
  readonly server: string;
  readonly container: string | null;
  /** At the end of each interval; null before the server was known. */
  readonly states: readonly ("up" | "down" | null)[];
  /** The smoothed round-trip time; null before it is known. */
  readonly rttMs: readonly (number | null)[];
  /** Upstream queries in each interval. */
  readonly queries: readonly number[];
}

/** Both lists have the same length, at most 1,440, and end with the present minute; a new process starts with none. */
export interface MinuteHistory {
  /** The end of the present minute; null before the first sample. */
  readonly until: string | null;
  readonly queries: readonly number[];
  /** Those with NXDOMAIN or an error. */
  readonly failures: readonly number[];
}

export interface HistoryReport {
  readonly everyMs: number;
  /** The end of the last interval; null before the first. */
  readonly until: string | null;
  readonly rates: RateHistory;
  readonly minutes: MinuteHistory;
  readonly servers: readonly ServerHistory[];
  /** Servers that are left out, because there are too many. */
  readonly omitted: number;
}
