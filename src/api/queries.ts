/**
 * Queries: past queries and query counters, as returned by `GET /v1/queries` and `GET /v1/counters`.
 */
import type { LocalSourceKey } from "../base/model/local-source.ts";
import type { QueryResult } from "../base/model/query-record.ts";
import type { Cause } from "./causes.ts";
import type { AddressOwner } from "./names.ts";

export interface QueryReport {
  readonly container: string;
  /** Increases by one with each query of a container; a gap means missing queries. */
  readonly seq: number;
  /** The time of its arrival. */
  readonly time: string;
  /** The queried name, with unprintable bytes as \DDD; null if names are hidden or the query is malformed. */
  readonly name: string | null;
  /** null if the query is malformed. */
  readonly type: string | null;
  /** "NONE" if there was no reply, because of a rule. */
  readonly rcode: string;
  /** The number of records in the answer section, and the TTL of the first one. */
  readonly answers: number;
  /** The first two addresses of the answer; none if names are hidden. */
  readonly addresses: readonly string[];
  /** The containers that have these addresses now. */
  readonly owners?: readonly AddressOwner[];
  /** Why it failed, if `causes` was requested: known facts, no query is sent. Missing for a query that succeeded. */
  readonly cause?: Cause | null;
  readonly ttl: number | null;
  readonly transport: "udp" | "tcp";
  /** How it was answered: see QUERY_RESULT in `src/base/model/query-record.ts`. */
  readonly result: QueryResult;
  /** Where a local answer comes from; null for all others. */
  readonly source: LocalSourceKey | null;
  /** The upstream server that replied, if any; `host(ADDRESS)` is queried from the host. */
  readonly upstream: string | null;
  /** The rule of a lease that had a say in the answer, with whose it is (`ruled`), or the policy that refused it (`denied`). Missing without one. */
  readonly rule?: string;
  /** Time to the answer in milliseconds; 0 if it was answered at once. */
  readonly ms: number;
}

/** The number of a container's queries that were overwritten before they could be read. */
export interface MissedReport {
  readonly container: string;
  readonly missed: number;
}

/** A stream with `perSecond` says how many queries were left out since the last such line. */
export interface SkippedReport {
  readonly skipped: number;
}

/** The response without `follow`. */
export interface QueriesReport {
  readonly queries: readonly QueryReport[];
  /** How many queries after `since` are no longer available. */
  readonly missed: number;
  /** The sequence number of the last query, for the next `since`; null for several containers. */
  readonly last: number | null;
}

/** Query counters of each container since it was attached. */
export interface CountersReport {
  readonly containers: readonly {
    readonly container: string;
    readonly counters: Readonly<Record<string, number>>;
  }[];
}
