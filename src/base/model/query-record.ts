/**
 * QueryRecord: one query of a container and its result, as the query history stores it, and the settings of the
 * history.
 */

import type { LocalSourceKey } from "./local-source.ts";

/** How a query was answered. */
export const QUERY_RESULTS = ["local", "cached", "stale", "forwarded", "refused", "failed", "ruled", "denied"] as const;
export type QueryResult = (typeof QUERY_RESULTS)[number];

/** The results as numbers, for the history. */
export const QUERY_RESULT = {
  /** From names of networks, or by a rule. */
  local: 0,
  /** The cache answered it. */
  cached: 1,
  /** An expired cache entry answered it. */
  stale: 2,
  /** An upstream server answered it. */
  forwarded: 3,
  /** Not processed: it is malformed, or too many queries are waiting. */
  refused: 4,
  /** No upstream gave a usable answer. */
  failed: 5,
  /** A rule of a lease decided it. */
  ruled: 6,
  /** A policy refused it. */
  denied: 7,
} as const satisfies Record<QueryResult, number>;

/** Stands for a response code if there was no reply, because of a rule. */
export const NO_REPLY = 0xff;

export interface QueryRecord {
  /** Grows by one with each query; after a restart of the container, or of dns11, it continues far above. */
  readonly seq: number;
  /** The time of its arrival, on the clock of `performance.now`. */
  readonly atMs: number;
  /** The name as it was queried, printable; null if names are hidden, or if it could not be read. */
  readonly name: string | null;
  readonly type: number;
  readonly rcode: number;
  /** Records in the answer section, and the TTL of the first. */
  readonly answers: number;
  readonly ttl: number | null;
  /** The first addresses of the answer; none if names are hidden. */
  readonly addresses: readonly string[];
  readonly isStream: boolean;
  readonly result: QueryResult;
  /** Where a local answer comes from. */
  readonly source: LocalSourceKey | null;
  /** The upstream that answered, if any. */
  readonly upstream: string | null;
  /** The rule of a lease that decided it, or the policy that refused it, as text for people. */
  readonly rule: string | null;
  /** The time from arrival to answer; 0 for local answers, which are not timed. */
  readonly tookMs: number;
}

/** Whether the history stores names, or no queries at all. */
export const QUERY_NAMES = ["full", "hidden", "off"] as const;
export type QueryNames = (typeof QUERY_NAMES)[number];

export interface QueriesPolicy {
  readonly names: QueryNames;
}

/**
 * A name, type and result that fails in one container, as its failure table stores it. Times are on the
 * clock of `performance.now`.
 */
export interface FailureRecord {
  /** In lower case and printable; null if names are hidden. */
  readonly name: string | null;
  readonly type: number;
  readonly rcode: number;
  /** Failures, and how many of them were steps of a lookup that then succeeded with another name. */
  readonly count: number;
  readonly steps: number;
  /** The last failure was such a step. */
  readonly isStepLast: boolean;
  /** Failures in the last minute, approximately. */
  readonly perMinute: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** The time at which the same name and type last resolved; undefined if it has not since the first failure. */
  readonly successMs: number | undefined;
  /** It resembles a container's name: it has one label, or was known as a name on this engine when it first failed. */
  readonly isLocal: boolean;
}

/**
 * One step of a query's resolution, for `dns11 explain`.
 */
export type StepLayer =
  | "policy"
  | "rules"
  | "links"
  | "names"
  | "reverse"
  | "special"
  | "route"
  | "cache"
  | "servers"
  | "filter";

export interface Step {
  readonly layer: StepLayer;
  /** Whether this step gave the answer. */
  readonly isAnswer: boolean;
  readonly why: string;
  /** What upstreams were sent and did; times are on the query's own clock. */
  readonly events?: readonly UpstreamEvent[];
}

/** What an upstream was sent or did, and when. */
export interface UpstreamEvent {
  readonly atMs: number;
  /** Undefined if it concerns all servers. */
  readonly server: string | undefined;
  readonly what: string;
}
