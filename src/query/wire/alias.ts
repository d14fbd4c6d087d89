/**
 * Alias: a question for a name with records of its own, whose CNAMEs lead to a name that is not local. That name is queried upstream in
 * its place, and the reply is turned into one for the original question: the CNAMEs come first, and the pointers of compressed names are
 * moved with the records that they point to.
 */
import { setU16, u16, u32 } from "../../base/dns/bytes.ts";
import {
  ANSWERS_AT,
  CODES_AT,
  HEADER_BYTES,
  RCODE_BITS,
  SECTIONS,
  countAt,
  rcodeOf,
  setTruncated,
  MESSAGE_BYTES_MAX,
} from "../../base/dns/header.ts";
import { POINTER, POINTER_BYTES, pointerTarget, pointerTo } from "../../base/dns/name.ts";
import { OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import {
  DATA_LENGTH_AT,
  QUESTION_FIXED_BYTES,
  QUESTION_POINTER,
  RECORD_FIXED_BYTES,
  TTL_AT,
  writeRecord,
} from "../../base/dns/record.ts";
import { type ChainEnd, addressBytesOf, writeChainEnd } from "./chain-end.ts";
import { eachName } from "./data.ts";
import { resetNameSteps, skipName } from "./name.ts";
import type { Question } from "./question.ts";

/** One CNAME: its TTL, and the labels of the name that it points to, without the terminating zero. */
export interface AliasLink {
  readonly ttlSeconds: number;
  readonly target: Uint8Array;
}

export interface Alias {
  /** Header and question of the original query. */
  readonly query: Buffer;
  readonly questionEnd: number;
  readonly type: number;
  /** The CNAME records, and their number. */
  readonly chain: Buffer;
  readonly links: number;
  /** The longest reply that the client accepts. */
  readonly limit: number;
  /** The client's OPT, if it has one. */
  readonly opt: { readonly isDnssecOk: boolean } | undefined;
}

/** The CNAME records for a question that ends at `questionEnd` of its message. */
export function chainOf(links: readonly AliasLink[], questionEnd: number): Buffer {
  const size = links.reduce((sum, { target }) => sum + linkBytes(target), 0);
  const chain = Buffer.alloc(size);
  let owner = QUESTION_POINTER;
  let at = 0;
  for (const { ttlSeconds, target } of links) {
    setU16(chain, at, owner);
    at = writeRecord(chain, at + POINTER_BYTES, TYPE.CNAME, ttlSeconds, target.length + 1);
    owner = pointerTo(questionEnd + at);
    chain.set(target, at);
    at += target.length + 1;
  }
  return chain;
}

function linkBytes(target: Uint8Array): number {
  return POINTER_BYTES + RECORD_FIXED_BYTES + target.length + 1;
}

/** Writes the query for another name into `out`: header, records and OPT stay. Returns its length. */
export function queryFor(target: Uint8Array, block: Buffer, question: Question, out: Buffer): number {
  const { offset, nameEnd, messageEnd } = question;
  block.copy(out, 0, offset, offset + HEADER_BYTES);
  out.set(target, HEADER_BYTES);
  const at = HEADER_BYTES + target.length;
  out[at] = 0;
  block.copy(out, at + 1, nameEnd, messageEnd);
  return at + 1 + messageEnd - nameEnd;
}

/** Message space for one reply; it is sent or copied before the next one is built. */
const out = Buffer.allocUnsafeSlow(MESSAGE_BYTES_MAX * 2);

/** The reply to the original question, made of the reply to the alias. `endsChain`: see RelayOptions. */
export function replyToAlias(reply: Uint8Array, alias: Alias, endsChain = false): Buffer {
  const { query, questionEnd, chain, links } = alias;
  out.set(reply.subarray(0, HEADER_BYTES));
  query.copy(out, HEADER_BYTES, HEADER_BYTES, questionEnd);
  chain.copy(out, questionEnd);
  const begin = questionEnd + chain.length;
  const length = moveRecords(reply, begin, begin - lastTargetBytes(chain));
  if (length === -1) return failed(alias);
  setU16(out, ANSWERS_AT, u16(out, ANSWERS_AT) + links);
  if (length <= alias.limit) return out.subarray(0, length);
  const end = endsChain && alias.opt === undefined ? chainEndOf(reply, alias) : undefined;
  return end === undefined ? truncated(alias, begin) : out.subarray(0, writeChainEnd(out, 0, end));
}

/** The addresses of the alias, for a client that may be unable to ask over TCP; undefined without one. */
function chainEndOf(reply: Uint8Array, { questionEnd, type, chain, limit: room }: Alias): ChainEnd | undefined {
  const size = addressBytesOf(type);
  if (size === 0 || rcodeOf(reply) !== RCODE.NOERROR) return undefined;
  let ttlSeconds = u32(chain, POINTER_BYTES + TTL_AT);
  const addresses: number[] = [];
  let at = skipName(reply, 0, HEADER_BYTES, reply.length) + QUESTION_FIXED_BYTES;
  for (let left = u16(reply, ANSWERS_AT); left > 0; left--) {
    const fixed = skipName(reply, 0, at, reply.length);
    const data = fixed + RECORD_FIXED_BYTES;
    at = data + u16(reply, fixed + DATA_LENGTH_AT);
    ttlSeconds = Math.min(ttlSeconds, u32(reply, fixed + TTL_AT));
    if (u16(reply, fixed) === type && at - data === size) addresses.push(data);
  }
  return addresses.length === 0 ? undefined : { questionEnd, type, ttlSeconds, bytes: reply, addresses, room };
}

/** The highest offset that a pointer can hold. */
const POINTER_MAX = 0x3fff;

/** The length of the name at the end of the chain, with its terminating zero. */
function lastTargetBytes(chain: Buffer): number {
  let at = 0;
  let size = 0;
  while (at < chain.length) {
    size = u16(chain, at + POINTER_BYTES + DATA_LENGTH_AT);
    at += POINTER_BYTES + RECORD_FIXED_BYTES + size;
  }
  return size;
}

/** Copies the records to `begin`; the name of the question is now at `nameAt`. Returns the length, or -1. */
function moveRecords(reply: Uint8Array, begin: number, nameAt: number): number {
  resetNameSteps(reply.length, true);
  const nameEnd = skipName(reply, 0, HEADER_BYTES, reply.length);
  const from = nameEnd + QUESTION_FIXED_BYTES;
  if (nameEnd === -1 || from > reply.length || begin + reply.length - from > MESSAGE_BYTES_MAX) return -1;
  out.set(reply.subarray(from), begin);
  const shift = begin - from;
  let isRight = true;
  const move = (start: number): void => {
    const pointer = pointerIn(reply, start);
    if (pointer === -1) return;
    const target = pointerTarget(reply, pointer);
    const moved = target < from ? nameAt + target - HEADER_BYTES : target + shift;
    if (moved > POINTER_MAX) isRight = false;
    setU16(out, pointer + shift, pointerTo(moved));
  };
  let at = from;
  for (let left = recordsIn(reply); left > 0; left--) {
    const fixed = skipName(reply, 0, at, reply.length);
    if (fixed === -1 || fixed + RECORD_FIXED_BYTES > reply.length) return -1;
    const data = fixed + RECORD_FIXED_BYTES;
    const end = data + u16(reply, fixed + DATA_LENGTH_AT);
    move(at);
    if (end > reply.length || !eachName(u16(reply, fixed), reply, data, end, move)) return -1;
    at = end;
  }
  return isRight ? at + shift : -1;
}

function recordsIn(reply: Uint8Array): number {
  let count = 0;
  for (let section = 0; section < SECTIONS; section++) count += u16(reply, countAt(section));
  return count;
}

/** Where the pointer is that ends a name; -1 if a zero does. */
function pointerIn(bytes: Uint8Array, start: number): number {
  for (let at = start; ; at += 1 + (bytes[at] as number)) {
    const size = bytes[at] as number;
    if (size === 0) return -1;
    if (size >= POINTER) return at;
  }
}

/** The CNAMEs only, for a client that can ask again over TCP. */
function truncated(alias: Alias, chainEnd: number): Buffer {
  setTruncated(out);
  const optBytes = alias.opt === undefined ? 0 : OPT_BYTES;
  const isFitting = chainEnd + optBytes <= alias.limit;
  return finish(alias, isFitting ? chainEnd : alias.questionEnd, isFitting ? alias.links : 0);
}

/** The alias's reply cannot be turned into ours. */
function failed(alias: Alias): Buffer {
  out[CODES_AT] = ((out[CODES_AT] as number) & ~RCODE_BITS) | RCODE.SERVFAIL;
  return finish(alias, alias.questionEnd, 0);
}

function finish({ opt }: Alias, length: number, answers: number): Buffer {
  for (let section = 0; section < SECTIONS; section++) setU16(out, countAt(section), 0);
  setU16(out, ANSWERS_AT, answers);
  if (opt === undefined) return out.subarray(0, length);
  setU16(out, countAt(2), 1);
  return out.subarray(0, writeOpt(out, length, 0, opt.isDnssecOk));
}
