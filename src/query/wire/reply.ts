/**
 * Writes replies over the query that they answer: header and question are already in place, so an answer needs a few
 * header bytes changed and records appended. Every function returns the length of the message.
 */
import { setU16, setU32 } from "../../base/dns/bytes.ts";
import {
  AD,
  CD,
  CODES_AT,
  FLAGS_AT,
  HEADER_BYTES,
  OPCODE,
  OPCODE_BITS,
  QR,
  QUESTIONS_AT,
  RA,
  RD,
  TC,
  opcodeOf,
  setTruncated,
  writeCounts,
  MESSAGE_BYTES_MAX,
  UDP_BYTES_MAX,
  UDP_BYTES_MIN,
} from "../../base/dns/header.ts";
import { POINTER_BYTES } from "../../base/dns/name.ts";
import { OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { QUESTION_POINTER, RECORD_FIXED_BYTES, writeRecord } from "../../base/dns/record.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { Question } from "./question.ts";

/** Of our SOA: a pointer and the root as names, and five numbers. */
const SOA_DATA_BYTES = POINTER_BYTES + 1 + 20;
/** The size of the whole record. */
export const SOA_BYTES = POINTER_BYTES + RECORD_FIXED_BYTES + SOA_DATA_BYTES;
/** The flags that an error reply copies from the query: opcode, TC and RD, or for a malformed one only TC and RD. */
const REFUSED_FLAGS = OPCODE_BITS | TC | RD;
const MALFORMED_FLAGS = TC | RD;
/** Of the second byte these are cleared: everything but the rcode and the bit that must be zero. */
const REFUSED_CODES = RA | AD | CD;

/** The size limit of a reply for a client that announces `udpSize`; 0 is no announcement. */
export function sizeLimit(udpSize: number, isStream: boolean): number {
  if (isStream) return MESSAGE_BYTES_MAX;
  return Math.min(UDP_BYTES_MAX, Math.max(UDP_BYTES_MIN, udpSize));
}

/** A reply of the header only. Flags beside the opcode are copied, as in Docker's library. */
export function refuseHeader(block: Buffer, offset: number, rcode: number, keepsOpcode: boolean): number {
  const flags = block[offset + FLAGS_AT] as number;
  block[offset + FLAGS_AT] = QR | (flags & (keepsOpcode ? REFUSED_FLAGS : MALFORMED_FLAGS));
  block[offset + CODES_AT] = ((block[offset + CODES_AT] as number) & REFUSED_CODES) | rcode;
  block.fill(0, offset + QUESTIONS_AT, offset + HEADER_BYTES);
  return HEADER_BYTES;
}

/** An error reply with the question, which could be parsed. Flags are copied as for `refuseHeader`. */
export function refuseQuestion(block: Buffer, question: Question, rcode: number): number {
  refuseHeader(block, question.offset, rcode, false);
  setU16(block, question.offset + QUESTIONS_AT, 1);
  return question.end - question.offset;
}

/** SERVFAIL and REFUSED as in Docker: without RA. */
export function failure(block: Buffer, question: Question, rcode: number, behaviour: Behaviour): number {
  writeHeader(block, question, rcode, false);
  return finish(block, question, question.end, 0, 0, behaviour, rcode);
}

/** The name exists, without records of the requested type. */
export function noData(block: Buffer, question: Question, behaviour: Behaviour, ttlSeconds?: number): number {
  return negative(block, question, RCODE.NOERROR, behaviour, ttlSeconds);
}

/** The name does not exist. */
export function nameError(block: Buffer, question: Question, behaviour: Behaviour, ttlSeconds?: number): number {
  return negative(block, question, RCODE.NXDOMAIN, behaviour, ttlSeconds);
}

function negative(
  block: Buffer,
  question: Question,
  rcode: number,
  behaviour: Behaviour,
  ttlSeconds: number = behaviour.ttlSeconds,
): number {
  writeHeader(block, question, rcode, true);
  let at = question.end;
  if (behaviour.hasNegativeSoa) at = writeSoa(block, at, ttlSeconds);
  return finish(block, question, at, 0, behaviour.hasNegativeSoa ? 1 : 0, behaviour, rcode);
}

/** Nothing but the question: the client is to ask again over TCP. */
export function truncated(block: Buffer, question: Question, behaviour: Behaviour): number {
  writeHeader(block, question, RCODE.NOERROR, true);
  setTruncated(block, question.offset);
  return finish(block, question, question.end, 0, 0, behaviour, RCODE.NOERROR);
}

/** An unsupported EDNS version. */
export function badVersion(block: Buffer, question: Question, behaviour: Behaviour): number {
  writeHeader(block, question, RCODE.NOERROR, true);
  return finish(block, question, question.end, 0, 0, behaviour, RCODE.BADVERS);
}

/** The name of an address. */
export function pointerAnswer(
  block: Buffer,
  question: Question,
  target: Uint8Array,
  behaviour: Behaviour,
  limit: number = MESSAGE_BYTES_MAX,
  ttlSeconds: number = behaviour.ttlSeconds,
): number {
  writeHeader(block, question, RCODE.NOERROR, true);
  const nameBytes = question.foldedLength + 1;
  const room = roomAfter(question, limit, behaviour) - RECORD_FIXED_BYTES - target.length;
  const ownerBytes = behaviour.compresses || nameBytes > room ? POINTER_BYTES : nameBytes;
  if (ownerBytes > room) {
    setTruncated(block, question.offset);
    return finish(block, question, question.end, 0, 0, behaviour, RCODE.NOERROR);
  }
  let at = writeOwner(block, question, question.end, ownerBytes);
  at = writeRecord(block, at, TYPE.PTR, ttlSeconds, target.length);
  block.set(target, at);
  return finish(block, question, at + target.length, 1, 0, behaviour, RCODE.NOERROR);
}

/** The order of the addresses of one answer; a new one for every query. */
type Shuffle = (count: number) => Uint16Array;

export interface AddressOptions {
  readonly limit: number;
  readonly ttlSeconds: number;
  /** In the order in which they are, not in random order. */
  readonly isSorted: boolean;
  readonly shuffle: Shuffle;
  readonly behaviour: Behaviour;
}

/**
 * All addresses of a name in random order, as many as fit: `size` bytes each, 4 for A and 16 for AAAA. Like Docker, it
 * repeats the owner name in full if everything fits, and compresses it only to fit more.
 */
export function addressAnswer(
  block: Buffer,
  question: Question,
  addresses: Uint8Array,
  size: 4 | 16,
  options: AddressOptions,
): number {
  const { behaviour, shuffle, ttlSeconds } = options;
  const count = addresses.length / size;
  const nameBytes = question.foldedLength + 1;
  const room = roomAfter(question, options.limit, behaviour);
  const isWhole = !behaviour.compresses && count * (nameBytes + RECORD_FIXED_BYTES + size) <= room;
  const ownerBytes = isWhole ? nameBytes : Math.min(POINTER_BYTES, nameBytes);
  const fitting = Math.min(count, Math.floor(room / (ownerBytes + RECORD_FIXED_BYTES + size)));
  writeHeader(block, question, RCODE.NOERROR, true);
  if (fitting < count) setTruncated(block, question.offset);
  const order = count > 1 && !options.isSorted ? shuffle(count) : undefined;
  let at = question.end;
  for (let i = 0; i < fitting; i++) {
    at = writeOwner(block, question, at, ownerBytes);
    at = writeRecord(block, at, question.type, ttlSeconds, size);
    const from = (order === undefined ? i : (order[i] as number)) * size;
    for (let b = 0; b < size; b++) block[at++] = addresses[from + b] as number;
  }
  return finish(block, question, at, fitting, 0, behaviour, RCODE.NOERROR);
}

/** The bytes available for records. */
export function roomAfter(question: Question, limit: number, behaviour: Behaviour): number {
  return limit - (question.end - question.offset) - (hasOpt(question, behaviour) ? OPT_BYTES : 0);
}

/** QR, the opcode, and the flags that are copied from the query; those of a NOTIFY are not copied. */
export function writeHeader(block: Buffer, { offset }: Question, rcode: number, isRecursive: boolean): void {
  const isQuery = opcodeOf(block, offset) === OPCODE.QUERY;
  const repeated = (block[offset + FLAGS_AT] as number) & (isQuery ? OPCODE_BITS | RD : OPCODE_BITS);
  block[offset + FLAGS_AT] = QR | repeated;
  const codes = isQuery ? (block[offset + CODES_AT] as number) & CD : 0;
  block[offset + CODES_AT] = (isRecursive ? RA : 0) | codes | rcode;
}

/** Writes the counts, and an OPT if the query has one. */
export function finish(
  block: Buffer,
  question: Question,
  end: number,
  answers: number,
  authorities: number,
  behaviour: Behaviour,
  rcode: number,
): number {
  const { offset, records } = question;
  const withOpt = hasOpt(question, behaviour);
  writeCounts(block, offset, answers, authorities, withOpt ? 1 : 0);
  return (withOpt ? writeOpt(block, end, rcode, records.isDnssecOk) : end) - offset;
}

function hasOpt({ records }: Question, behaviour: Behaviour): boolean {
  return behaviour.speaksEdns && records.optCount > 0;
}

function writeOwner(block: Buffer, question: Question, at: number, ownerBytes: number): number {
  if (ownerBytes === POINTER_BYTES) {
    setU16(block, at, QUESTION_POINTER);
    return at + POINTER_BYTES;
  }
  const start = question.offset + HEADER_BYTES;
  block.copyWithin(at, start, start + ownerBytes);
  return at + ownerBytes;
}

/**
 * An SOA owned by the queried name, so that clients cache the negative answer for as long as the TTL of our records.
 */
export function writeSoa(block: Buffer, end: number, ttlSeconds: number): number {
  setU16(block, end, QUESTION_POINTER);
  let at = writeRecord(block, end + POINTER_BYTES, TYPE.SOA, ttlSeconds, SOA_DATA_BYTES);
  setU16(block, at, QUESTION_POINTER);
  at += POINTER_BYTES;
  block[at++] = 0;
  for (const value of [1, ttlSeconds, ttlSeconds, ttlSeconds, ttlSeconds]) {
    setU32(block, at, value);
    at += 4;
  }
  return at;
}
