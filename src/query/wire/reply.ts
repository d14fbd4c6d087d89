/**
 * Replies, written over the query they answer: header and question already stand where they belong, so an answer is a
 * few header bytes changed and records appended. Every function returns the length of the message.
 */
import type { Behaviour } from "../../model/behaviour.ts";
import { HEADER_BYTES, OPCODE_QUERY, type Question } from "./question.ts";

export const RCODE = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, BADVERS: 16 } as const;

const CLASS_IN = 1;
const TYPE_PTR = 12;
const TYPE_SOA = 6;
const TYPE_OPT = 41;
/** Owner (a pointer to the question), type, class, TTL, length of the data. */
const RECORD_BYTES = 12;
const OPT_BYTES = 11;
const SOA_DATA_BYTES = 2 + 1 + 20;
/** What we tell others to send us at most: fits every path without fragments. */
const OUR_UDP_BYTES = 1232;
const UDP_BYTES_MIN = 512;
/** The largest payload of a UDP packet over IPv4. */
const UDP_BYTES_MAX = 65507;
const TCP_BYTES_MAX = 65535;

/** How large a reply may be for who announced `udpSize`; 0 without an announcement. */
export function sizeLimit(udpSize: number, isStream: boolean): number {
  if (isStream) return TCP_BYTES_MAX;
  return Math.min(UDP_BYTES_MAX, Math.max(UDP_BYTES_MIN, udpSize));
}

/** A reply of the header alone. What was asked beside the opcode's bits stays as it came, as Docker's library has it. */
export function refuseHeader(block: Buffer, offset: number, rcode: number, keepsOpcode: boolean): number {
  const flags = block[offset + 2] as number;
  block[offset + 2] = 0x80 | (flags & (keepsOpcode ? 0x7b : 0x03));
  block[offset + 3] = ((block[offset + 3] as number) & 0xb0) | rcode;
  block.fill(0, offset + 4, offset + HEADER_BYTES);
  return HEADER_BYTES;
}

/** The same, with the question that could still be read. */
export function refuseQuestion(block: Buffer, question: Question, rcode: number): number {
  refuseHeader(block, question.offset, rcode, false);
  block[question.offset + 5] = 1;
  return question.end - question.offset;
}

/** SERVFAIL and REFUSED as Docker makes them: without "recursion available". */
export function failure(block: Buffer, question: Question, rcode: number, behaviour: Behaviour): number {
  writeHeader(block, question, rcode, false);
  return finish(block, question, question.end, 0, 0, behaviour, rcode);
}

/** A name that is there, without the records that were asked for. */
export function noData(block: Buffer, question: Question, behaviour: Behaviour): number {
  return negative(block, question, RCODE.NOERROR, behaviour);
}

/** A name that does not exist. */
export function nameError(block: Buffer, question: Question, behaviour: Behaviour): number {
  return negative(block, question, RCODE.NXDOMAIN, behaviour);
}

function negative(block: Buffer, question: Question, rcode: number, behaviour: Behaviour): number {
  writeHeader(block, question, rcode, true);
  let at = question.end;
  if (behaviour.hasNegativeSoa) at = writeSoa(block, question, at, behaviour.ttlSeconds);
  return finish(block, question, at, 0, behaviour.hasNegativeSoa ? 1 : 0, behaviour, rcode);
}

/** A version of EDNS that nobody knows here. */
export function badVersion(block: Buffer, question: Question, behaviour: Behaviour): number {
  writeHeader(block, question, RCODE.NOERROR, true);
  return finish(block, question, question.end, 0, 0, behaviour, RCODE.BADVERS);
}

/** Where an address points back to. */
export function pointerAnswer(
  block: Buffer,
  question: Question,
  target: Uint8Array,
  behaviour: Behaviour,
  limit: number = TCP_BYTES_MAX,
): number {
  writeHeader(block, question, RCODE.NOERROR, true);
  const nameBytes = question.foldedLength + 1;
  const room = roomBehind(question, limit, behaviour) - (RECORD_BYTES - 2) - target.length;
  const ownerBytes = behaviour.compresses || nameBytes > room ? 2 : nameBytes;
  if (ownerBytes > room) {
    setTruncated(block, question);
    return finish(block, question, question.end, 0, 0, behaviour, RCODE.NOERROR);
  }
  let at = writeOwner(block, question, question.end, ownerBytes);
  at = writeFixed(block, at, TYPE_PTR, behaviour.ttlSeconds, target.length);
  block.set(target, at);
  return finish(block, question, at + target.length, 1, 0, behaviour, RCODE.NOERROR);
}

/** The order in which the addresses of one answer go out; drawn anew for every query. */
export type Shuffle = (count: number) => Uint16Array;

/**
 * All addresses of a name in a random order, as many as fit: `size` bytes each, 4 for A and 16 for AAAA. Docker repeats
 * the owner's name in full while everything fits, and compresses it only to fit more.
 */
export function addressAnswer(
  block: Buffer,
  question: Question,
  addresses: Uint8Array,
  size: 4 | 16,
  options: { readonly limit: number; readonly shuffle: Shuffle; readonly behaviour: Behaviour },
): number {
  const { behaviour, shuffle } = options;
  const count = addresses.length / size;
  const nameBytes = question.foldedLength + 1;
  const room = roomBehind(question, options.limit, behaviour);
  const isWhole = !behaviour.compresses && count * (nameBytes + RECORD_BYTES - 2 + size) <= room;
  const ownerBytes = isWhole ? nameBytes : Math.min(2, nameBytes);
  const fitting = Math.min(count, Math.floor(room / (ownerBytes + RECORD_BYTES - 2 + size)));
  writeHeader(block, question, RCODE.NOERROR, true);
  if (fitting < count) setTruncated(block, question);
  const order = count > 1 ? shuffle(count) : undefined;
  let at = question.end;
  for (let i = 0; i < fitting; i++) {
    at = writeOwner(block, question, at, ownerBytes);
    at = writeFixed(block, at, question.type, behaviour.ttlSeconds, size);
    const from = (order === undefined ? 0 : (order[i] as number)) * size;
    for (let b = 0; b < size; b++) block[at++] = addresses[from + b] as number;
  }
  return finish(block, question, at, fitting, 0, behaviour, RCODE.NOERROR);
}

/** The bytes that records may take up. */
function roomBehind(question: Question, limit: number, behaviour: Behaviour): number {
  return limit - (question.end - question.offset) - (hasOpt(question, behaviour) ? OPT_BYTES : 0);
}

function setTruncated(block: Buffer, { offset }: Question): void {
  block[offset + 2] = (block[offset + 2] as number) | 0x02;
}

/** QR, the opcode, and what a reply repeats of a query's flags; a NOTIFY's are not repeated. */
function writeHeader(block: Buffer, { offset }: Question, rcode: number, isRecursive: boolean): void {
  const flags = block[offset + 2] as number;
  const isQuery = ((flags >> 3) & 15) === OPCODE_QUERY;
  block[offset + 2] = 0x80 | (flags & (isQuery ? 0x79 : 0x78));
  block[offset + 3] = (isRecursive ? 0x80 : 0) | (isQuery ? (block[offset + 3] as number) & 0x10 : 0) | rcode;
}

/** The counts, and the OPT where one was asked with. */
function finish(
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
  block[offset + 6] = answers >> 8;
  block[offset + 7] = answers & 0xff;
  block[offset + 8] = 0;
  block[offset + 9] = authorities;
  block[offset + 10] = 0;
  block[offset + 11] = withOpt ? 1 : 0;
  if (!withOpt) return end - offset;
  block[end] = 0;
  writeU16(block, end + 1, TYPE_OPT);
  writeU16(block, end + 3, OUR_UDP_BYTES);
  block[end + 5] = rcode >> 4;
  block[end + 6] = 0;
  block[end + 7] = records.isDnssecOk ? 0x80 : 0;
  block[end + 8] = 0;
  writeU16(block, end + 9, 0);
  return end + OPT_BYTES - offset;
}

function hasOpt({ records }: Question, behaviour: Behaviour): boolean {
  return behaviour.speaksEdns && records.optCount > 0;
}

function writeOwner(block: Buffer, question: Question, at: number, ownerBytes: number): number {
  if (ownerBytes === 2) {
    block[at] = 0xc0;
    block[at + 1] = HEADER_BYTES;
    return at + 2;
  }
  const start = question.offset + HEADER_BYTES;
  block.copyWithin(at, start, start + ownerBytes);
  return at + ownerBytes;
}

function writeFixed(block: Buffer, at: number, type: number, ttlSeconds: number, dataBytes: number): number {
  writeU16(block, at, type);
  writeU16(block, at + 2, CLASS_IN);
  writeU16(block, at + 4, ttlSeconds >>> 16);
  writeU16(block, at + 6, ttlSeconds & 0xffff);
  writeU16(block, at + 8, dataBytes);
  return at + 10;
}

/** An SOA owned by the name that was asked, so that its absence may be remembered for as long as a name lives. */
function writeSoa(block: Buffer, question: Question, end: number, ttlSeconds: number): number {
  let at = writeOwner(block, question, end, 2);
  at = writeFixed(block, at, TYPE_SOA, ttlSeconds, SOA_DATA_BYTES);
  at = writeOwner(block, question, at, 2);
  block[at++] = 0;
  for (const value of [1, ttlSeconds, ttlSeconds, ttlSeconds, ttlSeconds]) {
    block.writeUInt32BE(value, at);
    at += 4;
  }
  return at;
}

function writeU16(block: Buffer, at: number, value: number): void {
  block[at] = value >> 8;
  block[at + 1] = value & 0xff;
}
