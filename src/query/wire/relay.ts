/**
 * Handing on an upstream's reply: written behind the question that asked for it, with that question's id, letter case and
 * flags, TTLs counted down, and no longer than whoever asked can take. Every function returns the length of the message.
 */
import { copyBytes } from "../../lib/bytes.ts";
import { type SharedReply, recordsOf } from "./shared-reply.ts";
import { RCODE } from "./reply.ts";

const TYPE_OPT = 41;
const OPT_BYTES = 11;
const OUR_UDP_BYTES = 1232;
/** From a record's TTL to its data, and where between them the length of the data stands. */
const TTL_TO_DATA = 6;
const TTL_TO_LENGTH = 4;

/** What whoever asked can take, and wants to know. */
export interface Asked {
  readonly limit: number;
  readonly hasOpt: boolean;
  readonly isDnssecOk: boolean;
  /** It asked whether the records were verified. */
  readonly wantsAuthentic: boolean;
  /** We hold the name, so that nobody may deny it. */
  readonly isKnown: boolean;
}

/** How old a reply is. */
export interface Age {
  readonly seconds: number;
  /** It is over, and goes out with this TTL. */
  readonly staleTtl?: number;
}

/** Writes `reply` over the query at `offset`, whose question is as long as the reply's own. */
export function relay(
  block: Buffer,
  offset: number,
  asked: Asked,
  reply: SharedReply,
  age: Age,
  why: Uint8Array | undefined = reply.extendedError,
): number {
  const { bytes, start, questionEnd } = reply;
  const rcode = asked.isKnown && reply.rcode === RCODE.NXDOMAIN ? RCODE.NOERROR : reply.rcode;
  const isAuthentic = reply.isAuthentic && asked.wantsAuthentic;
  writeFlags(block, offset, rcode, isAuthentic);
  const room = asked.limit - (asked.hasOpt ? OPT_BYTES : 0);
  let length = questionEnd + reply.length;
  if (length <= room) {
    copyBytes(bytes, start, start + reply.length, block, offset + questionEnd);
    writeCount(block, offset + 6, reply.answers);
    writeCount(block, offset + 8, reply.authorities);
    writeCount(block, offset + 10, reply.additionals);
    if (reply.isTruncated) setTruncated(block, offset);
    writeTtls(block, offset, reply, recordsOf(reply), age);
  } else {
    length = writeWhatFits(block, offset, reply, room, age);
  }
  return asked.hasOpt ? writeOpt(block, offset, length, asked, rcode, why) : length;
}

/** A failure of our making: the question, and nothing but why. */
export function relayFailure(
  block: Buffer,
  offset: number,
  questionEnd: number,
  asked: Asked,
  rcode: number,
  why?: Uint8Array,
): number {
  writeFlags(block, offset, rcode, false);
  block.fill(0, offset + 6, offset + 12);
  return asked.hasOpt ? writeOpt(block, offset, questionEnd, asked, rcode, why) : questionEnd;
}

/** An extended error as an option (RFC 8914). */
export function errorOption(code: number, text: string): Buffer {
  const words = Buffer.from(text.slice(0, EXTENDED_TEXT_MAX), "latin1");
  const option = Buffer.alloc(6 + words.length);
  option.writeUInt16BE(15, 0);
  option.writeUInt16BE(2 + words.length, 2);
  option.writeUInt16BE(code, 4);
  words.copy(option, 6);
  return option;
}

/** What an extended error may say of itself: as much as fits beside the longest name in the smallest reply. */
const EXTENDED_TEXT_MAX = 200;

/** QR, the opcode, RD and CD of the query; RA; AD where it is to be told. An answer out of our hands is no authority's. */
function writeFlags(block: Buffer, offset: number, rcode: number, isAuthentic: boolean): void {
  block[offset + 2] = 0x80 | ((block[offset + 2] as number) & 0x79);
  block[offset + 3] = 0x80 | ((block[offset + 3] as number) & 0x10) | (isAuthentic ? 0x20 : 0) | (rcode & 15);
}

function writeCount(block: Buffer, at: number, count: number): void {
  block[at] = count >> 8;
  block[at + 1] = count & 0xff;
}

function setTruncated(block: Buffer, offset: number): void {
  block[offset + 2] = (block[offset + 2] as number) | 0x02;
}

function writeTtls(block: Buffer, offset: number, reply: SharedReply, count: number, age: Age): void {
  if (age.seconds === 0 && age.staleTtl === undefined) return;
  const { questionEnd, ttlOffsets } = reply;
  for (let i = 0; i < count; i++) {
    const at = offset + questionEnd + (ttlOffsets[i] as number);
    block.writeUInt32BE(age.staleTtl ?? Math.max(0, block.readUInt32BE(at) - age.seconds), at);
  }
}

/**
 * As many whole records as there is room for. Where all answers fit, what is missing behind them are extras; otherwise
 * the reply says that it is truncated (RFC 2181, 9), and has what a client that cannot ask by TCP may make do with.
 */
function writeWhatFits(block: Buffer, offset: number, reply: SharedReply, room: number, age: Age): number {
  const { bytes, start, questionEnd, ttlOffsets, answers, authorities, additionals } = reply;
  let length = 0;
  let fitting = 0;
  for (const records = recordsOf(reply); fitting < records; fitting++) {
    const at = ttlOffsets[fitting] as number;
    const end = at + TTL_TO_DATA + bytes.readUInt16BE(start + at + TTL_TO_LENGTH);
    if (questionEnd + end > room) break;
    length = end;
  }
  copyBytes(bytes, start, start + length, block, offset + questionEnd);
  let left = fitting;
  for (const [section, held] of [answers, authorities, additionals].entries()) {
    const count = Math.min(left, held);
    writeCount(block, offset + 6 + section * 2, count);
    left -= count;
  }
  if (reply.isTruncated || answers === 0 || fitting < answers) setTruncated(block, offset);
  writeTtls(block, offset, reply, fitting, age);
  return questionEnd + length;
}

function writeOpt(
  block: Buffer,
  offset: number,
  length: number,
  asked: Asked,
  rcode: number,
  option: Uint8Array | undefined,
): number {
  const at = offset + length;
  const fits = option !== undefined && length + OPT_BYTES + option.length <= asked.limit;
  const count = block.readUInt16BE(offset + 10) + 1;
  block.writeUInt16BE(count, offset + 10);
  block[at] = 0;
  block.writeUInt16BE(TYPE_OPT, at + 1);
  block.writeUInt16BE(OUR_UDP_BYTES, at + 3);
  block[at + 5] = rcode >> 4;
  block[at + 6] = 0;
  block[at + 7] = asked.isDnssecOk ? 0x80 : 0;
  block[at + 8] = 0;
  block.writeUInt16BE(fits ? option.length : 0, at + 9);
  if (fits) block.set(option, at + OPT_BYTES);
  return length + OPT_BYTES + (fits ? option.length : 0);
}
