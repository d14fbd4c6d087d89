/**
 * Handing on an upstream's reply: written behind the question that asked for it, with that question's id, letter case and
 * flags, TTLs counted down, and no longer than whoever asked can take. Every function returns the length of the message.
 */
import { setU16, setU32, u16, u32 } from "../../base/dns/bytes.ts";
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
  setTruncated,
  writeCounts,
} from "../../base/dns/header.ts";
import { OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { DATA_LENGTH_AT, RECORD_FIXED_BYTES, TTL_AT } from "../../base/dns/record.ts";
import { copyBytes } from "../../base/lib/bytes.ts";
import { type SharedReply, recordsOf } from "./shared-reply.ts";

/** From a record's TTL to its data, and where between them the length of the data stands. */
const TTL_TO_DATA = RECORD_FIXED_BYTES - TTL_AT;
const TTL_TO_LENGTH = DATA_LENGTH_AT - TTL_AT;

/** What whoever asked can take, and wants to know. */
export interface RelayOptions {
  readonly limit: number;
  readonly hasOpt: boolean;
  readonly isDnssecOk: boolean;
  /** It asked whether the records were verified. */
  readonly wantsAuthentic: boolean;
  /** We hold the name, so that nobody may deny it. */
  readonly isLocalName: boolean;
}

/** How old a reply is. */
export interface ReplyAge {
  readonly seconds: number;
  /** It is over, and goes out with this TTL. */
  readonly staleTtl?: number;
}

/** Writes `reply` over the query at `offset`, whose question is as long as the reply's own. */
export function relay(
  block: Buffer,
  offset: number,
  asked: RelayOptions,
  reply: SharedReply,
  age: ReplyAge,
  why: Uint8Array | undefined = reply.extendedError,
): number {
  const { bytes, start, questionEnd } = reply;
  const rcode = asked.isLocalName && reply.rcode === RCODE.NXDOMAIN ? RCODE.NOERROR : reply.rcode;
  const isAuthentic = reply.isAuthentic && asked.wantsAuthentic;
  writeFlags(block, offset, rcode, isAuthentic);
  const room = asked.limit - (asked.hasOpt ? OPT_BYTES : 0);
  let length = questionEnd + reply.length;
  if (length <= room) {
    copyBytes(bytes, start, start + reply.length, block, offset + questionEnd);
    writeCounts(block, offset, reply.answers, reply.authorities, reply.additionals);
    if (reply.isTruncated) setTruncated(block, offset);
    writeTtls(block, offset, reply, recordsOf(reply), age);
  } else {
    length = writeWhatFits(block, offset, reply, room, age);
  }
  return asked.hasOpt ? addOpt(block, offset, length, asked, rcode, why) : length;
}

/** A failure of our making: the question, and nothing but why. */
export function relayFailure(
  block: Buffer,
  offset: number,
  questionEnd: number,
  asked: RelayOptions,
  rcode: number,
  why?: Uint8Array,
): number {
  writeFlags(block, offset, rcode, false);
  block.fill(0, offset + ANSWERS_AT, offset + HEADER_BYTES);
  return asked.hasOpt ? addOpt(block, offset, questionEnd, asked, rcode, why) : questionEnd;
}

/** QR, the opcode, RD and CD of the query; RA; AD where it is to be told. An answer out of our hands is no authority's. */
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
 * As many whole records as there is room for. Where all answers fit, what is missing behind them are extras; otherwise
 * the reply says that it is truncated (RFC 2181, 9), and has what a client that cannot ask by TCP may make do with.
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

function addOpt(
  block: Buffer,
  offset: number,
  length: number,
  asked: RelayOptions,
  rcode: number,
  option: Uint8Array | undefined,
): number {
  const at = offset + length;
  const fits = option !== undefined && length + OPT_BYTES + option.length <= asked.limit;
  setU16(block, offset + ADDITIONALS_AT, u16(block, offset + ADDITIONALS_AT) + 1);
  const optionBytes = fits ? option.length : 0;
  const behind = writeOpt(block, at, rcode, asked.isDnssecOk, optionBytes);
  if (fits) block.set(option, behind);
  return behind + optionBytes - offset;
}
