/**
 * SharedReply: an upstream reply in a form that can be sent to many clients: where its records are, without the OPT of
 * that server, and the offsets of their TTLs. Records are not decoded, so unknown types are passed on unchanged.
 */
import { u16, u32 } from "../../base/dns/bytes.ts";
import { AD, CODES_AT, HEADER_BYTES, QUESTIONS_AT, countAt, isTruncated, rcodeOf } from "../../base/dns/header.ts";
import { OPTION, OPTION_FIXED_BYTES, OPT_RCODE_AT, OPT_RCODE_SHIFT } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import {
  DATA_LENGTH_AT,
  QUESTION_FIXED_BYTES,
  RECORD_FIXED_BYTES,
  SOA_MINIMUM_BYTES,
  TTL_AT,
  ttlOf,
} from "../../base/dns/record.ts";
import { resetNameSteps, skipName } from "./name.ts";

export interface SharedReply {
  /** Everything after the question is in `length` bytes from `start`. The creator defines how long they are valid. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly length: number;
  /** The offset of these bytes in a message. */
  readonly questionEnd: number;
  /** The offset of each record's TTL, in order; only as many are valid as there are records. */
  readonly ttlOffsets: readonly number[];
  readonly answers: number;
  readonly authorities: number;
  readonly additionals: number;
  /** It has the upper bits from EDNS. */
  readonly rcode: number;
  readonly isTruncated: boolean;
  /** The server has validated the records (AD). */
  readonly isAuthentic: boolean;
  /** The server's extended error, as an option. */
  readonly extendedError: Buffer | undefined;
}

/** A reply that has just arrived, with what determines its lifetime. */
export interface FreshReply extends SharedReply {
  /** It has no record of the queried type. */
  readonly isNegative: boolean;
  /** The shortest TTL of all records; undefined without records. */
  readonly ttlSeconds: number | undefined;
  /** The lifetime that the SOA gives to a negative answer. */
  readonly soaSeconds: number | undefined;
}

/**
 * Parses a reply; the result refers to the message's own bytes. Undefined if it has no question, or if a name cannot be
 * read: it may have pointed into trailing bytes that were removed.
 */
export function readFreshReply(message: Buffer): FreshReply | undefined {
  const end = message.length;
  resetNameSteps(end);
  const nameEnd = u16(message, QUESTIONS_AT) === 1 ? skipName(message, 0, HEADER_BYTES, end) : -1;
  if (nameEnd === -1 || nameEnd + QUESTION_FIXED_BYTES > end) return undefined;
  const questionEnd = nameEnd + QUESTION_FIXED_BYTES;
  const qtype = u16(message, nameEnd);
  if (!scanner.go(message, questionEnd, qtype)) return undefined;
  const rcode = scanner.rcodeBits | rcodeOf(message);
  const [answers, authorities, additionals] = scanner.counts;
  return {
    bytes: message,
    start: questionEnd,
    length: scanner.end - questionEnd,
    questionEnd,
    ttlOffsets: scanner.ttlOffsets,
    answers,
    authorities,
    additionals,
    rcode,
    isNegative: rcode === RCODE.NXDOMAIN || !scanner.hasAnswer,
    isTruncated: isTruncated(message),
    isAuthentic: ((message[CODES_AT] as number) & AD) !== 0,
    ttlSeconds: scanner.ttlSeconds,
    soaSeconds: scanner.soaSeconds,
    extendedError: scanner.extendedError,
  };
}

/** The number of records, and so of valid `ttlOffsets`. */
export function recordsOf({ answers, authorities, additionals }: SharedReply): number {
  return answers + authorities + additionals;
}

/** One pass over the records of a message that is known to be readable. One object serves all messages. */
class ReplyScanner {
  readonly counts: [number, number, number] = [0, 0, 0];
  /** As long as for the largest reply so far; the first `#ttlCount` are valid. */
  readonly #ttlOffsets: number[] = [];
  #ttlCount = 0;
  #start = 0;
  end = 0;
  hasAnswer = false;
  rcodeBits = 0;
  ttlSeconds: number | undefined;
  soaSeconds: number | undefined;
  extendedError: Buffer | undefined;

  /** Whether every record could be read. */
  go(message: Buffer, at: number, qtype: number): boolean {
    this.counts.fill(0);
    this.#ttlCount = this.rcodeBits = 0;
    this.#start = this.end = at;
    this.hasAnswer = false;
    this.ttlSeconds = this.soaSeconds = this.extendedError = undefined;
    for (let section = 0; section < this.counts.length; section++) {
      for (let left = u16(message, countAt(section)); left > 0; left--) {
        const step = this.#read(message, section, qtype);
        if (step !== "read") return step === "last";
      }
    }
    return true;
  }

  /** A copy: the array is reused for the next message. */
  get ttlOffsets(): number[] {
    return this.#ttlOffsets.slice(0, this.#ttlCount);
  }

  #read(message: Buffer, section: number, qtype: number): "read" | "last" | "broken" {
    const fixed = skipName(message, 0, this.end, message.length);
    if (fixed === -1 || fixed + RECORD_FIXED_BYTES > message.length) return "broken";
    const type = u16(message, fixed);
    const dataEnd = fixed + RECORD_FIXED_BYTES + u16(message, fixed + DATA_LENGTH_AT);
    if (dataEnd > message.length) return "broken";
    if (type === TYPE.OPT && section === 2) {
      this.rcodeBits = (message[fixed + OPT_RCODE_AT] as number) << OPT_RCODE_SHIFT;
      this.extendedError = extendedErrorIn(message, fixed + RECORD_FIXED_BYTES, dataEnd);
      // Records after the OPT are additional records and optional (RFC 2181, 9).
      return "last";
    }
    const ttl = ttlOf(u32(message, fixed + TTL_AT));
    this.#ttlOffsets[this.#ttlCount++] = fixed + TTL_AT - this.#start;
    this.ttlSeconds = Math.min(this.ttlSeconds ?? ttl, ttl);
    if (section === 0 && type === qtype) this.hasAnswer = true;
    if (section === 1 && type === TYPE.SOA && dataEnd - SOA_MINIMUM_BYTES >= fixed + RECORD_FIXED_BYTES) {
      this.soaSeconds = Math.min(ttl, ttlOf(u32(message, dataEnd - SOA_MINIMUM_BYTES)));
    }
    this.counts[section] = (this.counts[section] as number) + 1;
    this.end = dataEnd;
    return "read";
  }
}

const scanner = new ReplyScanner();

function extendedErrorIn(message: Buffer, start: number, end: number): Buffer | undefined {
  for (let at = start; at + OPTION_FIXED_BYTES <= end;) {
    const after = at + OPTION_FIXED_BYTES + u16(message, at + 2);
    if (after > end) return undefined;
    if (u16(message, at) === OPTION.EXTENDED_ERROR) return Buffer.from(message.subarray(at, after));
    at = after;
  }
  return undefined;
}
