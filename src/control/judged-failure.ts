/**
 * JudgedFailure: whether a failure still counts, and which of two causes is shown: the one of its moment, or the one by what is
 * known now. What is certain now is of more use; what has become a guess since is not.
 */
import type { Cause, CauseCode } from "../api/causes.ts";
import type { EarlierReason } from "../api/failures.ts";
import { LIMITS } from "../base/limits.ts";
import type { FailureRecord } from "../base/model/failure-record.ts";

export interface Judged {
  readonly cause: Cause | null;
  readonly earlier: EarlierReason | undefined;
}

interface Known {
  readonly present: Cause | null;
  /** undefined if none was recorded. */
  readonly recorded: Cause | null | undefined;
  /** The container that has queried the name. */
  readonly isRunning: boolean;
  readonly nowMs: number;
}

/** States that end without a change of the name: if another cause is found now, this one is over. */
const PASSING: ReadonlySet<CauseCode> = new Set([
  ...(["upstreams-down", "tcp-blocked", "no-upstream", "internal-network", "crash-loop"] as const),
  ...(["no-healthy-task", "swarm-alone"] as const),
]);

export function judge(record: FailureRecord, { present, recorded, isRunning, nowMs }: Known): Judged {
  const { lastMs, successMs } = record;
  const isOver = !isRunning || present?.code === "resolves-now";
  // What failed a moment ago failed for what is known now.
  const isFresh = nowMs - lastMs < LIMITS.causeAgainMs;
  const isPresent = recorded == null || (!isOver && (isFresh || present?.isBreaking === true));
  const isSame = present !== null && present.code === recorded?.code;
  const cause = isPresent || isSame ? present : recorded;
  const hasPassed = !isPresent && !isSame && PASSING.has(recorded.code);
  return { cause, earlier: earlierOf() };

  function earlierOf(): EarlierReason | undefined {
    if (!isRunning) return "ended";
    if (successMs !== undefined && successMs >= lastMs) return "resolved";
    if (isOver || hasPassed) return "recovered";
    return nowMs - lastMs > LIMITS.failureIdleMs ? "idle" : undefined;
  }
}
