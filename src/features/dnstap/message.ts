/**
 * Messages of dnstap (dnstap.info) as bytes. It is here, and not a package for protocol buffers, because two messages with some fifteen fields
 * are written and none is read: each field is a tag, which has its number and type, and a number or bytes with their length.
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, QUESTIONS_AT } from "../../base/dns/header.ts";
import { POINTER } from "../../base/dns/name.ts";
import { QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import { copyBytes } from "../../base/lib/bytes.ts";

/** Of Dnstap. */
const IDENTITY = 1;
const VERSION = 2;
const EXTRA = 3;
const MESSAGE = 14;
const KIND = 15;
/** Of Message. */
const TYPE = 1;
const FAMILY = 2;
const PROTOCOL = 3;
const QUERY_ADDRESS = 4;
const RESPONSE_ADDRESS = 5;
const RESPONSE_PORT = 7;
const QUERY_SECONDS = 8;
const QUERY_NANOSECONDS = 9;
const QUERY_MESSAGE = 10;
const RESPONSE_SECONDS = 12;
const RESPONSE_NANOSECONDS = 13;
const RESPONSE_MESSAGE = 14;

const VARINT = 0;
const BYTES = 2;
const FIXED32 = 5;
const FIXED32_BYTES = 5;

const INET = 1;
const INET6 = 2;
const UDP = 1;
const TCP = 2;
const DOT = 3;

/** Types of messages that dns11 has. */
export const TAPPED = { clientQuery: 5, clientResponse: 6, forwarderQuery: 7, forwarderResponse: 8 } as const;

/** More than all fields but the message and what the sender is called. */
const FIELDS_BYTES = 128;
const SECOND_MS = 1_000;
const NS_IN_MS = 1e6;

/** Reused for each message. Times are those of `Date.now`, with fractions. */
export interface TappedMessage {
  type: number;
  isStream: boolean;
  isTls: boolean;
  /** Undefined if it is not known. */
  queryAddress: Uint8Array | undefined;
  /** That of a server, with its port. */
  responseAddress: Uint8Array | undefined;
  responsePort: number;
  queryMs: number;
  /** Undefined for a query. */
  responseMs: number | undefined;
  /** The message is at `start`, up to `end`. */
  bytes: Uint8Array;
  start: number;
  end: number;
}

/** Who sees the messages, and which container they are about. */
export class MessageWriter {
  /** The fields of Dnstap beside the message. */
  readonly #envelope: Buffer;

  constructor(identity: string, extra: string) {
    const texts = [identity, "dns11", extra].map((text) => Buffer.from(text));
    const envelope = Buffer.alloc(texts.reduce((sum, each) => sum + bytesSize(each.length), 0) + 2);
    let at = 0;
    for (const [index, field] of [IDENTITY, VERSION, EXTRA].entries()) {
      const text = texts[index] as Buffer;
      at = writeBytes(envelope, at, field, text, 0, text.length);
    }
    writeNumber(envelope, at, KIND, 1);
    this.#envelope = envelope;
  }

  /** No message takes more than that. */
  sizeMax(message: TappedMessage): number {
    return this.#envelope.length + FIELDS_BYTES + message.end - message.start;
  }

  /** Writes a message at `at`, where there is room; returns the offset after it. */
  write(block: Uint8Array, at: number, message: TappedMessage): number {
    copyBytes(this.#envelope, 0, this.#envelope.length, block, at);
    const start = writeNumber(block, at + this.#envelope.length, MESSAGE, contentSize(message), BYTES);
    return writeContent(block, start, message);
  }
}

function contentSize(message: TappedMessage): number {
  const { queryAddress, responseAddress, responsePort, queryMs, responseMs, start, end } = message;
  let size = 6 + bytesSize(end - start) + 1 + varintSize(secondsOf(queryMs)) + FIXED32_BYTES;
  if (queryAddress !== undefined) size += bytesSize(queryAddress.length);
  if (responseAddress !== undefined) size += bytesSize(responseAddress.length) + 1 + varintSize(responsePort);
  if (responseMs !== undefined) size += 1 + varintSize(secondsOf(responseMs)) + FIXED32_BYTES;
  return size;
}

function writeContent(block: Uint8Array, start: number, message: TappedMessage): number {
  const { type, isStream, isTls, queryAddress, responseAddress, responsePort, queryMs, responseMs, bytes } = message;
  const isIPv6 = (responseAddress ?? queryAddress)?.length === 16;
  let at = writeNumber(block, start, TYPE, type);
  at = writeNumber(block, at, FAMILY, isIPv6 ? INET6 : INET);
  at = writeNumber(block, at, PROTOCOL, isTls ? DOT : isStream ? TCP : UDP);
  if (queryAddress !== undefined) at = writeBytes(block, at, QUERY_ADDRESS, queryAddress, 0, queryAddress.length);
  if (responseAddress !== undefined) {
    at = writeBytes(block, at, RESPONSE_ADDRESS, responseAddress, 0, responseAddress.length);
    at = writeNumber(block, at, RESPONSE_PORT, responsePort);
  }
  at = writeTime(block, at, QUERY_SECONDS, QUERY_NANOSECONDS, queryMs);
  if (responseMs === undefined) return writeBytes(block, at, QUERY_MESSAGE, bytes, message.start, message.end);
  at = writeTime(block, at, RESPONSE_SECONDS, RESPONSE_NANOSECONDS, responseMs);
  return writeBytes(block, at, RESPONSE_MESSAGE, bytes, message.start, message.end);
}

function secondsOf(ms: number): number {
  return Math.floor(ms / SECOND_MS);
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

function bytesSize(length: number): number {
  return 1 + varintSize(length) + length;
}

/** `wire`: another type for a number that is a length. */
function writeNumber(block: Uint8Array, at: number, field: number, value: number, wire = VARINT): number {
  block[at++] = (field << 3) | wire;
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) block[at++] = (rest % 0x80) | 0x80;
  block[at++] = rest;
  return at;
}

function writeBytes(
  block: Uint8Array,
  at: number,
  field: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  const next = writeNumber(block, at, field, end - start, BYTES);
  copyBytes(bytes, start, end, block, next);
  return next + end - start;
}

function writeTime(block: Uint8Array, at: number, seconds: number, nanoseconds: number, ms: number): number {
  const whole = secondsOf(ms);
  let next = writeNumber(block, at, seconds, whole);
  block[next++] = (nanoseconds << 3) | FIXED32;
  let rest = Math.floor((ms - whole * SECOND_MS) * NS_IN_MS);
  for (let index = 0; index < 4; index++, rest = Math.floor(rest / 0x100)) block[next++] = rest % 0x100;
  return next;
}

/** What is left of a message whose names nobody may read: its header, and type and class of the question. The root is its name. */
const NAMELESS = new Uint8Array(HEADER_BYTES + 1 + QUESTION_FIXED_BYTES);

/** The message without names, addresses and texts. It is valid until the next call; its length is that of the returned part. */
export function withoutNames(bytes: Uint8Array, start: number, end: number): Uint8Array {
  NAMELESS.fill(0);
  NAMELESS.set(bytes.subarray(start, Math.min(end, start + QUESTIONS_AT)));
  const fixedAt = nameEnd(bytes, start + HEADER_BYTES, end);
  if (fixedAt === undefined || fixedAt + QUESTION_FIXED_BYTES > end) return NAMELESS.subarray(0, HEADER_BYTES);
  setU16(NAMELESS, QUESTIONS_AT, 1);
  NAMELESS.set(bytes.subarray(fixedAt, fixedAt + QUESTION_FIXED_BYTES), HEADER_BYTES + 1);
  return NAMELESS;
}

/** Where a name ends that is not compressed; undefined if it is none. */
export function nameEnd(bytes: Uint8Array, start: number, end: number): number | undefined {
  for (let at = start; at < end;) {
    const size = bytes[at] as number;
    if (size === 0) return at + 1;
    if (size >= POINTER) return undefined;
    at += size + 1;
  }
  return undefined;
}
