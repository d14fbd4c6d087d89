/**
 * Which questions have one answer for all who ask: plain ones, for records of the internet, to be answered by recursion.
 * What else a query says that may change its answer makes it one of its own: it is sent on as it is, and not kept.
 */
import { OPCODE_QUERY, type Question } from "../wire/question.ts";

/** With DNSSEC records, and without verification, are other answers to the same question (RFC 4035, 3.2). */
const DO = 1;
const CD = 2;
/** A question of its own. */
export const NOT_SHAREABLE = -1;

const RD_BIT = 0x01;
const AD_BIT = 0x20;
const CD_BIT = 0x10;
const CLASS_IN = 1;
/** Types from here on are questions about a server or for a transfer, not records; 255 is any of them. */
const META_TYPES = 128;
const LAST_META_TYPE = 255;
/** Between two neighbours only: NSID, keepalive, cookie, padding. */
const HOP_BY_HOP = new Set([3, 10, 11, 12]);

/** DO and CD as one number; NOT_SHAREABLE for a question of its own. */
export function shareBits(block: Buffer, question: Question): number {
  const { offset, end, type, records } = question;
  const flags = block[offset + 2] as number;
  if (((flags >> 3) & 15) !== OPCODE_QUERY || (flags & RD_BIT) === 0) return NOT_SHAREABLE;
  if (type === 0 || (type >= META_TYPES && type <= LAST_META_TYPE)) return NOT_SHAREABLE;
  if (block[end - 2] !== 0 || block[end - 1] !== CLASS_IN) return NOT_SHAREABLE;
  if (((block[offset + 7] as number) | (block[offset + 9] as number)) !== 0) return NOT_SHAREABLE;
  if (records.count !== records.optCount || records.optCount > 1) return NOT_SHAREABLE;
  if (!areOptionsHopByHop(block, records.optDataAt, records.optDataEnd)) return NOT_SHAREABLE;
  const isChecking = ((block[offset + 3] as number) & CD_BIT) !== 0;
  return (records.isDnssecOk ? DO : 0) | (isChecking ? CD : 0);
}

export function isDnssecOk(bits: number): boolean {
  return (bits & DO) !== 0;
}

/** The flags that go upstream with such a question: AD, so that we learn whether records were verified, and its CD. */
export function upstreamFlags(bits: number): number {
  return AD_BIT | ((bits & CD) === 0 ? 0 : CD_BIT);
}

/** Whether the header of a query asks to be told what was verified (RFC 6840, 5.7). */
export function asksForAuthentic(query: Buffer, offset: number): boolean {
  return ((query[offset + 3] as number) & AD_BIT) !== 0;
}

function areOptionsHopByHop(block: Buffer, start: number, end: number): boolean {
  for (let at = start; at + 4 <= end; at += 4 + block.readUInt16BE(at + 2)) {
    if (!HOP_BY_HOP.has(block.readUInt16BE(at))) return false;
  }
  return true;
}
