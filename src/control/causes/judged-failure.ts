/**
 * JudgedFailure: whether a failure still counts, and which of two causes is shown: the one of its moment, or the one by what is
 * known now. What is certain now is of more use; what has become a guess since is not.
 */
import type { Cause, CauseCode } from "../../api/causes.ts";
import type { EarlierReason } from "../../api/failures.ts";
import { LIMITS } from "../../base/limits.ts";
import type { FailureRecord } from "../../base/model/query-record.ts";

export interface Judged {
  readonly cause: Cause | null;
  readonly earlier: EarlierReason | undefined;
}

/** What was found out about a failure. */
export interface RecordedCause {
  readonly cause: Cause | null;
  /** A time of the clock of `performance.now`. */
  readonly atMs: number;
}

interface Known {
  readonly present: Cause | null;
  readonly recorded: RecordedCause | undefined;
  /** The container that has queried the name. */
  readonly isRunning: boolean;
  readonly nowMs: number;
}

/** States that end without a change of the name: if another cause is found now, this one is over. */
const PASSING: ReadonlySet<CauseCode> = new Set([
  ...(["upstreams-down", "tcp-blocked", "no-upstream", "internal-network", "crash-loop"] as const),
  ...(["no-healthy-task", "swarm-alone"] as const),
  ...(["tls-blocked", "tls-absent", "tls-name", "tls-untrusted", "tls-time", "tls-authorities"] as const),
]);

/** Guesses, until servers are known to be down, which takes some failures, or their late replies have come. */
const GUESSES: ReadonlySet<CauseCode | undefined> = new Set(["upstream-error", "upstream-slow"]);

/** Whether the failure was a moment ago, and nothing better is recorded of it than what is known now. */
export function isFresh({ lastMs }: FailureRecord, recorded: RecordedCause | undefined, nowMs: number): boolean {
  if (nowMs - lastMs >= LIMITS.causeAgainMs) return false;
  return recorded === undefined || lastMs > recorded.atMs || GUESSES.has(recorded.cause?.code);
}

export function judge(record: FailureRecord, { present, recorded, isRunning, nowMs }: Known): Judged {
  const { lastMs, successMs } = record;
  const isOver = !isRunning || present?.code === "resolves-now";
  const then = recorded?.cause ?? null;
  // Its replies have come since, too late.
  const isDisproved = present?.code === "upstream-slow" && then?.code === "upstreams-down";
  const isPresent =
    then === null || isDisproved || (!isOver && (isFresh(record, recorded, nowMs) || present?.isBreaking === true));
  const isSame = present !== null && present.code === then?.code;
  const cause = isPresent || isSame ? present : then;
  const hasPassed = !isPresent && !isSame && PASSING.has(then.code);
  return { cause, earlier: earlierOf() };

  function earlierOf(): EarlierReason | undefined {
    if (!isRunning) return "ended";
    if (successMs !== undefined && successMs >= lastMs) return "resolved";
    if (isOver || hasPassed) return "recovered";
    return nowMs - lastMs > LIMITS.failureIdleMs ? "idle" : undefined;
  }
}
