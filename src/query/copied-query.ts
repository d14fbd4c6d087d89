/**
 * CopiedQuery: what a deferred query has of its message, in its own memory.
 */
import { copyBytes } from "../base/lib/bytes.ts";
import { shareBits } from "./cache/shareable.ts";
import type { DeferredQuery } from "./ports.ts";
import type { Question } from "./wire/question.ts";
import { signatureOf } from "./wire/records.ts";

type CopiedQuery = Omit<DeferredQuery, "isLocalName" | "route">;

export function copiedQuery(block: Buffer, question: Question): CopiedQuery {
  const { offset, end, messageEnd, records, type, folded, foldedLength, hash } = question;
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
  };
}
