/**
 * Refusals: replies to queries that cannot be answered as what they are: unreadable, unsupported, or with invalid EDNS.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import { DROPPED, UNDECIDED } from "../ports.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import type { Question, Verdict } from "../wire/question.ts";
import { badVersion, refuseHeader, refuseQuestion } from "../wire/reply.ts";

/** Writes the error reply to a query that cannot be read; returns its length, or DROPPED. */
export function refuseUnreadable(
  block: Buffer,
  question: Question,
  offset: number,
  verdict: Exclude<Verdict, "answer">,
  outcome: Outcome,
): number {
  if (verdict === "ignore") return DROPPED;
  outcome.stage = STAGE.malformed;
  outcome.result = QUERY_RESULT.refused;
  if (verdict === "not-implemented") return refuseHeader(block, offset, RCODE.NOTIMP, true);
  if (verdict === "malformed") return refuseHeader(block, offset, RCODE.FORMERR, false);
  outcome.type = question.type;
  outcome.nameEnd = question.nameEnd;
  return refuseQuestion(block, question, RCODE.FORMERR);
}

/** Writes the error reply to invalid EDNS; returns UNDECIDED if the EDNS is valid. */
export function refuseEdns(block: Buffer, question: Question, behaviour: Behaviour, outcome: Outcome): number {
  const { optCount, optVersion } = question.records;
  if (optCount === 1 && optVersion === 0) return UNDECIDED;
  outcome.stage = STAGE.refused;
  outcome.result = QUERY_RESULT.refused;
  if (optCount > 1) return refuseQuestion(block, question, RCODE.FORMERR);
  outcome.rcode = RCODE.BADVERS;
  return badVersion(block, question, behaviour);
}
