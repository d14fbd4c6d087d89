/**
 * Failures: names that fail in containers, as returned by `GET /v1/failures`.
 */
import type { Cause, CauseCode } from "./causes.ts";

export interface FailureReport {
  readonly container: string;
  readonly containerId: string;
  /** Running containers in its network namespace, any of which may have asked; missing without any. */
  readonly sharedWith?: readonly string[];
  /** false for a container that has ended; its failures are listed for ten minutes. */
  readonly isRunning: boolean;
  /** The Compose project and service of the container, if any. */
  readonly project: string | null;
  readonly service: string | null;
  /** It is in lower case; null if names are hidden. */
  readonly name: string | null;
  readonly type: string;
  /** A response code, or NODATA for a name without an IPv4 address. */
  readonly result: string;
  /** Queries that failed, without steps of a search list whose lookup succeeded. */
  readonly count: number;
  /** Of these, in the last minute. */
  readonly perMinute: number;
  /** When the first and the last of them failed. */
  readonly first: string;
  readonly last: string;
  /** The time at which it last resolved, if it has since the first failure. */
  readonly lastSuccess: string | null;
  /** A name like a container's: a single label, or one that is known on this engine. */
  readonly isContainerName: boolean;
  /** The most likely cause, by the facts of the last failure; null if names are hidden. */
  readonly cause: Cause | null;
  /** Why it no longer counts; missing while it fails. */
  readonly earlier?: EarlierReason;
}

export type EarlierReason =
  /** The container has ended. */
  | "ended"
  /** The name has resolved since. */
  | "resolved"
  /** Nobody has asked again, and what made it fail is over. */
  | "recovered"
  /** It has not failed for five minutes. */
  | "idle";

/** Somebody has made it so, and it is not that nobody has the name. */
const MEANT: ReadonlySet<CauseCode> = new Set(["policy-denied", "one-family"]);

/**
 * A name that fails now and should not: one like a container's, one that a policy refuses, or one of the outside world whose servers fail. That
 * a name of the outside world does not exist may be as it should be. Only these count, in all commands and on the page.
 */
export function isFailing({ isContainerName, result, cause, earlier }: FailureReport): boolean {
  if (earlier !== undefined || cause?.code === "resolves-now") return false;
  const isDenied = result === "NXDOMAIN" || result === "NODATA";
  return isContainerName || !isDenied || cause?.isBreaking === true || (cause !== null && MEANT.has(cause.code));
}

/**
 * A name that resolves, but not to what its clients need: it is that of services of several projects, of a paused container, or
 * of one that has moved since they queried it; or an upstream server answers in place of a container. No query fails.
 */
export interface MisleadingName {
  readonly name: string;
  /** null if upstream servers answer for it. */
  readonly network: string | null;
  /** The containers with the name. */
  readonly containers: readonly string[];
  /** The containers that have queried the name lately; empty if it concerns all on the network. */
  readonly clients: readonly string[];
  readonly cause: Cause;
}

/** A container whose queries do not reach dns11, so that its failures are not seen. */
export interface UnwatchedContainer {
  readonly container: string;
  readonly cause: Cause;
}

/** What a rule of a lease has done to queries. It is what a test wants, and no failure. */
export interface InjectedFault {
  /** What it does. */
  readonly text: string;
  /** The process that holds the lease. */
  readonly by: string;
  readonly since: string;
  /** Queries that it applied to, and the containers that sent them. */
  readonly applied: number;
  readonly containers: readonly string[];
}

/** As a sentence. */
export function injectedText({ text, by, applied, containers }: InjectedFault, since: string): string {
  const done =
    applied === 0
      ? "it has applied to no query yet"
      : `it has applied to ${applied} ${applied === 1 ? "query" : "queries"} of ${containers.join(", ")}`;
  return `a fault is injected by ${by} since ${since}: ${text}; ${done}`;
}

export interface FailuresReport {
  /** The one that failed last comes first. */
  readonly failures: readonly FailureReport[];
  readonly misleading: readonly MisleadingName[];
  readonly unwatched: readonly UnwatchedContainer[];
  /** What rules of leases in force do, which is no failure; missing without any. */
  readonly injected?: readonly InjectedFault[];
  /** Failures that are left out, because there are too many. */
  readonly omitted: number;
}
