/**
 * Writes an upstream reply for a client, after the client's question: with the client's id, letter case and flags,
 * with TTLs counted down, and within the client's size limit. Every function returns the length of the message.
 */
import { setU16, setU32, u16, u32, copyBytes } from "../../base/dns/bytes.ts";
import {
  AD,
  ADDITIONALS_AT,
  ANSWERS_AT,
  CD,
  CODES_AT,
  FLAGS_AT,
  HEADER_BYTES,
  OPCODE_BITS,
  QR,
  RA,
  RCODE_BITS,
  RD,
  countAt,
  isTruncated,
  setTruncated,
  writeCounts,
} from "../../base/dns/header.ts";
import { OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { DATA_LENGTH_AT, RECORD_FIXED_BYTES, TTL_AT } from "../../base/dns/record.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { type ChainEnd, addressBytesOf, isChainEnd, questionType, writeChainEnd } from "./chain-end.ts";
import { type SharedReply, recordsOf } from "./shared-reply.ts";

/** The distance from a record's TTL to its data and to the length of its data. */
const TTL_TO_DATA = RECORD_FIXED_BYTES - TTL_AT;
const TTL_TO_LENGTH = DATA_LENGTH_AT - TTL_AT;

/** What the client can receive, and what it requested. */
export interface RelayOptions {
  readonly limit: number;
  readonly hasOpt: boolean;
  readonly isDnssecOk: boolean;
  /** The client requested the AD bit. */
  readonly wantsAuthentic: boolean;
  /** The name is local, so NXDOMAIN must not be returned. */
  readonly isLocalName: boolean;
  /** It may be unable to ask over TCP: where CNAMEs leave no room for an address, it gets addresses without them. */
  readonly endsChain?: boolean;
}

/** The age of a reply. */
export interface ReplyAge {
  readonly seconds: number;
  /** The reply is stale and gets this TTL. */
  readonly staleTtl?: number;
}

/** Writes `reply` over the query at `offset`, whose question has the same length as that of the reply. */
export function relay(
  block: Buffer,
  offset: number,
  options: RelayOptions,
  reply: SharedReply,
  age: ReplyAge,
  why: Uint8Array | undefined = reply.extendedError,
): number {
  const { bytes, start, questionEnd } = reply;
  const rcode = options.isLocalName && reply.rcode === RCODE.NXDOMAIN ? RCODE.NOERROR : reply.rcode;
  const isAuthentic = reply.isAuthentic && options.wantsAuthentic;
  writeFlags(block, offset, rcode, isAuthentic);
  const room = options.limit - (options.hasOpt ? OPT_BYTES : 0);
  let length = questionEnd + reply.length;
  if (length <= room) {
    copyBytes(bytes, start, start + reply.length, block, offset + questionEnd);
    writeCounts(block, offset, reply.answers, reply.authorities, reply.additionals);
    if (reply.isTruncated) setTruncated(block, offset);
    writeTtls(block, offset, reply, recordsOf(reply), age);
  } else {
    const end = options.endsChain && rcode === RCODE.NOERROR ? chainEndOf(block, offset, reply, room, age) : undefined;
    length = end === undefined ? writeWhatFits(block, offset, reply, room, age) : writeChainEnd(block, offset, end);
  }
  return options.hasOpt ? addOpt(block, offset, length, options, rcode, why) : length;
}

/**
 * Puts another address first each time, as clients take the first one: `reply` has been relayed to `offset`. Returns the number
 * of these addresses, or 0 if the order stays. Only the data of records changes places, and only where the addresses are the last
 * records and have the same owner in the same bytes: as names point backwards, none of the message can continue in that data.
 */
export function rotateAddresses(block: Buffer, offset: number, reply: SharedReply, type: number): number {
  const { bytes, start, questionEnd, ttlOffsets, answers, authorities, additionals } = reply;
  const dataBytes = type === TYPE.A ? 4 : type === TYPE.AAAA ? 16 : 0;
  if (answers < 2 || dataBytes === 0 || authorities + additionals > 0) return 0;
  const count = sameRecordsAtEnd(reply, type, dataBytes);
  if (count < 2) return 0;
  const first = answers - count;
  const rotation = Math.floor(Math.random() * count);
  if (first > 0 && isTruncated(block, offset) && isChainEnd(block, offset, questionEnd, type)) return 0;
  // Of a reply that was cut, fewer are written.
  const written = u16(block, offset + ANSWERS_AT) - first;
  for (let i = 0; i < written; i++) {
    const from = start + TTL_TO_DATA + (ttlOffsets[first + ((i + rotation) % count)] as number);
    const at = offset + questionEnd + TTL_TO_DATA + (ttlOffsets[first + i] as number);
    copyBytes(bytes, from, from + dataBytes, block, at);
  }
  return count;
}

/** How many records at the end have this type, this length of data, and the bytes of the last one's owner. */
function sameRecordsAtEnd(reply: SharedReply, type: number, dataBytes: number): number {
  const { bytes, start, ttlOffsets, answers } = reply;
  const lastOwner = endOf(reply, answers - 2);
  const ownerBytes = start + (ttlOffsets[answers - 1] as number) - TTL_AT - lastOwner;
  let count = 0;
  for (; count < answers; count++) {
    const record = answers - 1 - count;
    const owner = endOf(reply, record - 1);
    const fixed = start + (ttlOffsets[record] as number) - TTL_AT;
    if (fixed - owner !== ownerBytes || !areSame(bytes, owner, lastOwner, ownerBytes)) break;
    if (u16(bytes, fixed) !== type || u16(bytes, fixed + DATA_LENGTH_AT) !== dataBytes) break;
  }
  return count;
}

/** The end of a record; before the first one, the start of all. */
function endOf({ bytes, start, ttlOffsets }: SharedReply, record: number): number {
  if (record < 0) return start;
  const at = start + (ttlOffsets[record] as number);
  return at + TTL_TO_DATA + u16(bytes, at + TTL_TO_LENGTH);
}

function areSame(bytes: Uint8Array, a: number, b: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (bytes[a + i] !== bytes[b + i]) return false;
  return true;
}

/** An error reply of our own: the question, and the reason. */
export function relayFailure(
  block: Buffer,
  offset: number,
  questionEnd: number,
  options: RelayOptions,
  rcode: number,
  why?: Uint8Array,
): number {
  writeFlags(block, offset, rcode, false);
  block.fill(0, offset + ANSWERS_AT, offset + HEADER_BYTES);
  return options.hasOpt ? addOpt(block, offset, questionEnd, options, rcode, why) : questionEnd;
}

/**
 * QR, the opcode, RD and CD of the query; RA; AD if requested. AA is never set, because the answer is not from an
 * authoritative server.
 */
function writeFlags(block: Buffer, offset: number, rcode: number, isAuthentic: boolean): void {
  const [flags, codes] = [offset + FLAGS_AT, offset + CODES_AT];
  block[flags] = QR | ((block[flags] as number) & (OPCODE_BITS | RD));
  block[codes] = RA | ((block[codes] as number) & CD) | (isAuthentic ? AD : 0) | (rcode & RCODE_BITS);
}

function writeTtls(block: Buffer, offset: number, reply: SharedReply, count: number, age: ReplyAge): void {
  if (age.seconds === 0 && age.staleTtl === undefined) return;
  const { questionEnd, ttlOffsets } = reply;
  for (let i = 0; i < count; i++) {
    const at = offset + questionEnd + (ttlOffsets[i] as number);
    setU32(block, at, age.staleTtl ?? Math.max(0, u32(block, at) - age.seconds));
  }
}

/**
 * Writes as many whole records as fit. If all answers fit, the missing records are optional; otherwise the reply is
 * truncated (RFC 2181, 9) and contains what is useful to a client without TCP.
 */
function writeWhatFits(block: Buffer, offset: number, reply: SharedReply, room: number, age: ReplyAge): number {
  const { bytes, start, questionEnd, ttlOffsets, answers, authorities, additionals } = reply;
  let length = 0;
  let fitting = 0;
  for (const records = recordsOf(reply); fitting < records; fitting++) {
    const at = ttlOffsets[fitting] as number;
    const end = at + TTL_TO_DATA + u16(bytes, start + at + TTL_TO_LENGTH);
    if (questionEnd + end > room) break;
    length = end;
  }
  copyBytes(bytes, start, start + length, block, offset + questionEnd);
  let left = fitting;
  for (const [section, held] of [answers, authorities, additionals].entries()) {
    const count = Math.min(left, held);
    setU16(block, offset + countAt(section), count);
    left -= count;
  }
  if (reply.isTruncated || answers === 0 || fitting < answers) setTruncated(block, offset);
  writeTtls(block, offset, reply, fitting, age);
  return questionEnd + length;
}

/** Undefined where an address fits with what leads to it, or there is none. */
function chainEndOf(
  block: Buffer,
  offset: number,
  reply: SharedReply,
  room: number,
  age: ReplyAge,
): ChainEnd | undefined {
  const { bytes, start, questionEnd, ttlOffsets, answers } = reply;
  const type = questionType(block, offset + questionEnd);
  const size = addressBytesOf(type);
  if (size === 0) return undefined;
  const addresses: number[] = [];
  let ttl = Number.POSITIVE_INFINITY;
  for (let i = 0; i < answers; i++) {
    const at = ttlOffsets[i] as number;
    const fixed = start + at - TTL_AT;
    ttl = Math.min(ttl, u32(bytes, start + at));
    if (u16(bytes, fixed) !== type || u16(bytes, fixed + DATA_LENGTH_AT) !== size) continue;
    if (questionEnd + at + TTL_TO_DATA + size <= room) return undefined;
    addresses.push(fixed + RECORD_FIXED_BYTES);
  }
  if (addresses.length === 0) return undefined;
  const ttlSeconds = age.staleTtl ?? Math.max(0, ttl - age.seconds);
  return { questionEnd, type, ttlSeconds, bytes, addresses, room };
}

function addOpt(
  block: Buffer,
  offset: number,
  length: number,
  options: RelayOptions,
  rcode: number,
  option: Uint8Array | undefined,
): number {
  const at = offset + length;
  const fits = option !== undefined && length + OPT_BYTES + option.length <= options.limit;
  setU16(block, offset + ADDITIONALS_AT, u16(block, offset + ADDITIONALS_AT) + 1);
  const optionBytes = fits ? option.length : 0;
  const after = writeOpt(block, at, rcode, options.isDnssecOk, optionBytes);
  if (fits) block.set(option, after);
  return after + optionBytes - offset;
}
