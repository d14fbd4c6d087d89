/**
 * Queries: what containers asked, as `GET /v1/queries` and `GET /v1/counters` tell it.
 */
import type { QueryResult } from "../base/model/query-record.ts";

export interface QueryReport {
  readonly container: string;
  /** Grows by one with each query of a container; where it jumps, some are missing. */
  readonly seq: number;
  /** When it came. */
  readonly time: string;
  /** As it was asked, what is not printable as \DDD; null where names are hidden, or it cannot be read. */
  readonly name: string | null;
  /** null where it cannot be read. */
  readonly type: string | null;
  readonly rcode: string;
  /** Records in the answer, and the TTL of the first. */
  readonly answers: number;
  readonly ttl: number | null;
  readonly transport: "udp" | "tcp";
  readonly result: QueryResult;
  /** Which server answered, where one was asked: `host(ADDRESS)` is asked from the host. */
  readonly upstream: string | null;
  /** Until it was answered, in milliseconds; 0 where that was at once. */
  readonly ms: number;
}

/** Queries of a container that a reader was too late for. */
export interface MissedReport {
  readonly container: string;
  readonly missed: number;
}

/** The answer to who does not follow. */
export interface QueriesReport {
  readonly queries: readonly QueryReport[];
  /** Of those after `since`, how many are not here any more. */
  readonly missed: number;
  /** The number of the last query that was looked at, for the next `since`; null where several containers were meant. */
  readonly last: number | null;
}

/** What containers have asked since each was attached, in numbers. */
export interface CountersReport {
  readonly containers: readonly {
    readonly container: string;
    readonly counters: Readonly<Record<string, number>>;
  }[];
}
