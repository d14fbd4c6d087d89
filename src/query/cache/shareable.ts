/**
 * Which queries have an answer that clients may share: plain recursive ones of class IN. A query with anything else
 * that may change its answer is forwarded as it is, and not cached.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { AD, ANSWERS_AT, AUTHORITIES_AT, CD, CODES_AT, FLAGS_AT, OPCODE, RD, opcodeOf } from "../../base/dns/header.ts";
import { isMetaType } from "../../base/dns/record-type.ts";
import { CLASS } from "../../base/dns/record.ts";
import { areOptionsHopByHop } from "../wire/hop-options.ts";
import type { Question } from "../wire/question.ts";

/** With DNSSEC records, and without validation, are different answers to the same question (RFC 4035, 3.2). */
const WITH_DNSSEC = 1;
const UNCHECKED = 2;
/** The answer is for this query only. */
export const NOT_SHAREABLE = -1;

/** DO and CD as one number; NOT_SHAREABLE if the answer is for this query only. */
export function shareBits(block: Buffer, question: Question): number {
  const { offset, type, records } = question;
  const isRecursive = ((block[offset + FLAGS_AT] as number) & RD) !== 0;
  if (opcodeOf(block, offset) !== OPCODE.QUERY || !isRecursive) return NOT_SHAREABLE;
  if (type === 0 || isMetaType(type) || question.class !== CLASS.IN) return NOT_SHAREABLE;
  if ((u16(block, offset + ANSWERS_AT) | u16(block, offset + AUTHORITIES_AT)) !== 0) return NOT_SHAREABLE;
  if (records.count !== records.optCount || records.optCount > 1) return NOT_SHAREABLE;
  if (!areOptionsHopByHop(block, records.optDataAt, records.optDataEnd)) return NOT_SHAREABLE;
  const isUnchecked = ((block[offset + CODES_AT] as number) & CD) !== 0;
  return (records.isDnssecOk ? WITH_DNSSEC : 0) | (isUnchecked ? UNCHECKED : 0);
}

export function isDnssecOk(bits: number): boolean {
  return (bits & WITH_DNSSEC) !== 0;
}

/** The flags of the upstream query that follow from the key. */
export function upstreamFlags(bits: number): number {
  return (bits & UNCHECKED) === 0 ? 0 : CD;
}

/** Whether the header of a query requests the AD bit (RFC 6840, 5.7). */
export function requestsAuthentic(query: Buffer, offset: number): boolean {
  return ((query[offset + CODES_AT] as number) & AD) !== 0;
}
