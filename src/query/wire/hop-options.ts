/**
 * Removes EDNS options that are for one hop only, such as a cookie, which belongs to one client and one server (RFC 7873). dns11 is a
 * neighbour of the client and of the server, so neither gets the options of the other.
 */
import { setU16, u16, copyBytes } from "../../base/dns/bytes.ts";
import {
  SECTIONS,
  countAt,
  ADDITIONALS_AT,
  ANSWERS_AT,
  HEADER_BYTES,
  AD,
  AUTHORITIES_AT,
  CD,
  CODES_AT,
  FLAGS_AT,
  OPCODE,
  RD,
  opcodeOf,
} from "../../base/dns/header.ts";
import { OPTION, OPTION_FIXED_BYTES, OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { resetNameSteps } from "./name.ts";
import { Records } from "./records.ts";
import { isMetaType } from "../../base/dns/record-type.ts";
import { CLASS } from "../../base/dns/record.ts";
import type { Question } from "./question.ts";

const HOP_BY_HOP = new Set<number>([OPTION.NSID, OPTION.COOKIE, OPTION.KEEPALIVE, OPTION.PADDING]);
const records = new Records();

/** Whether all options are hop-by-hop. */
function areOptionsHopByHop(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at + OPTION_FIXED_BYTES <= end; at += OPTION_FIXED_BYTES + u16(bytes, at + 2)) {
    if (!HOP_BY_HOP.has(u16(bytes, at))) return false;
  }
  return true;
}

/** A copy of a message without its hop-by-hop options. */
export function withoutHopByHop(message: Buffer, questionEnd: number): Buffer {
  let count = 0;
  for (let section = 0; section < SECTIONS; section++) count += u16(message, countAt(section));
  resetNameSteps(message.length);
  records.reset();
  if (records.walk(message, 0, questionEnd, message.length, count) === -1) return Buffer.from(message);
  const { optDataAt, optDataEnd } = records;
  const kept: Buffer[] = [];
  for (let at = optDataAt; at + OPTION_FIXED_BYTES <= optDataEnd;) {
    const end = at + OPTION_FIXED_BYTES + u16(message, at + 2);
    if (!HOP_BY_HOP.has(u16(message, at))) kept.push(message.subarray(at, end));
    at = end;
  }
  const shorter = Buffer.concat([message.subarray(0, optDataAt), ...kept, message.subarray(optDataEnd)]);
  if (optDataAt > 0) setU16(shorter, optDataAt - 2, optDataEnd - optDataAt - (message.length - shorter.length));
  return shorter;
}

/**
 * A query that tells its server about the client: header and question, with our OPT and the option; without an option, with our OPT alone.
 * Everything else that the client has sent is left out, because it may claim to be another client; so is a signed message, which cannot be
 * changed and could claim that, too.
 */
export function queryWithClientOption(message: Buffer, questionEnd: number, option: Uint8Array): Buffer {
  const query = Buffer.allocUnsafe(questionEnd + OPT_BYTES + option.length);
  copyBytes(message, 0, questionEnd, query, 0);
  query.fill(0, ANSWERS_AT, HEADER_BYTES);
  setU16(query, ADDITIONALS_AT, 1);
  const wantsDnssec = readRecords(message, questionEnd) && records.isDnssecOk;
  const at = writeOpt(query, questionEnd, 0, wantsDnssec, option.length);
  copyBytes(option, 0, option.length, query, at);
  return query;
}

/** A reply as the client would have got it from the server: without the option, and without an OPT if its query had none. */
export function replyWithoutClientOption(message: Buffer, questionEnd: number, hasOpt: boolean): Buffer {
  if (!readRecords(message, questionEnd) || records.optDataAt === 0) return message;
  const { optDataAt, optDataEnd } = records;
  const optAt = optDataAt - OPT_BYTES;
  const additionals = u16(message, ADDITIONALS_AT);
  // As every server writes it: the last record, with the shortest name.
  if (!hasOpt && message[optAt] === 0 && optDataEnd === message.length && additionals > 0) {
    const shorter = Buffer.from(message.subarray(0, optAt));
    setU16(shorter, ADDITIONALS_AT, additionals - 1);
    return shorter;
  }
  const kept: Buffer[] = [];
  for (let at = optDataAt; at + OPTION_FIXED_BYTES <= optDataEnd;) {
    const end = at + OPTION_FIXED_BYTES + u16(message, at + 2);
    if (u16(message, at) !== OPTION.CLIENT_SUBNET) kept.push(message.subarray(at, end));
    at = end;
  }
  const shorter = Buffer.concat([message.subarray(0, optDataAt), ...kept, message.subarray(optDataEnd)]);
  setU16(shorter, optDataAt - 2, optDataEnd - optDataAt - (message.length - shorter.length));
  return shorter;
}

function readRecords(message: Buffer, questionEnd: number): boolean {
  let count = 0;
  for (let section = 0; section < SECTIONS; section++) count += u16(message, countAt(section));
  resetNameSteps(message.length);
  records.reset();
  return records.walk(message, 0, questionEnd, message.length, count) !== -1;
}

/** With DNSSEC records, or without validation, the answer to a question is another one (RFC 4035, 3.2). */
const WITH_DNSSEC = 1;
const UNCHECKED = 2;
/**
 * Which queries have an answer that clients may share: plain recursive ones of class IN. A query with anything else that may change its
 * answer is forwarded as it is, and not cached: it has these bits.
 */
export const NOT_SHAREABLE = -1;

/** DO and CD as one number; NOT_SHAREABLE if the answer is for this query only. */
export function shareBits(block: Buffer, question: Question): number {
  const { offset, type, records: asked } = question;
  const isRecursive = ((block[offset + FLAGS_AT] as number) & RD) !== 0;
  if (opcodeOf(block, offset) !== OPCODE.QUERY || !isRecursive) return NOT_SHAREABLE;
  if (type === 0 || isMetaType(type) || question.class !== CLASS.IN) return NOT_SHAREABLE;
  if ((u16(block, offset + ANSWERS_AT) | u16(block, offset + AUTHORITIES_AT)) !== 0) return NOT_SHAREABLE;
  if (asked.count !== asked.optCount || asked.optCount > 1) return NOT_SHAREABLE;
  if (!areOptionsHopByHop(block, asked.optDataAt, asked.optDataEnd)) return NOT_SHAREABLE;
  const isUnchecked = ((block[offset + CODES_AT] as number) & CD) !== 0;
  return (asked.isDnssecOk ? WITH_DNSSEC : 0) | (isUnchecked ? UNCHECKED : 0);
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
