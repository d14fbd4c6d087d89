/**
 * CopiedQuery: a query that is deferred, with its message in its own memory.
 */
import { copyBytes } from "../base/lib/bytes.ts";
import { shareBits } from "./cache/shareable.ts";
import type { DeferredQuery } from "./ports.ts";
import type { Question } from "./wire/question.ts";
import { signatureOf } from "./wire/records.ts";

/** What a deferred query has beside its message. */
export type DeferralReason = Pick<
  DeferredQuery,
  "isLocalName" | "route" | "isOwn" | "alias" | "ask" | "delayMs" | "rule" | "policy" | "refusal" | "held"
>;

/** All keys in one literal: spreading objects into it would cost each cache miss microseconds. */
export function copiedQuery(block: Buffer, question: Question, reason: DeferralReason): DeferredQuery {
  const { offset, end, messageEnd, records, type, folded, foldedLength, hash } = question;
  const { isLocalName, route, isOwn, alias, ask, delayMs, rule, policy, refusal, held } = reason;
  const query = Buffer.allocUnsafe(messageEnd - offset);
  copyBytes(block, offset, messageEnd, query, 0);
  return {
    query,
    questionEnd: end - offset,
    hasOpt: records.optCount > 0,
    udpSize: records.optCount > 0 ? records.optUdpSize : 0,
    type,
    bits: shareBits(block, question),
    name: folded.toString("latin1", 0, foldedLength),
    nameHash: hash,
    isDnssecOk: records.isDnssecOk,
    signature: signatureOf(records, offset),
    isLocalName,
    route,
    isOwn,
    alias,
    ask,
    delayMs,
    rule,
    policy,
    refusal,
    held,
  };
}
