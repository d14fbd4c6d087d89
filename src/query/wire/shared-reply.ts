/**
 * SharedReply: an upstream's reply in the form in which it is handed to many: where the bytes of its records lie, without
 * the OPT that was between that server and us, and where in them the TTLs stand. Records are never decoded, so that a type
 * nobody here knows is handed on byte for byte.
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
  /** Where everything behind the question lies, `length` bytes from `start` on, for as long as whoever made this says. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly length: number;
  /** Where in a message that begins. */
  readonly questionEnd: number;
  /** Where in the records the TTL of each stands, in their order; as many count as there are records. */
  readonly ttlOffsets: readonly number[];
  readonly answers: number;
  readonly authorities: number;
  readonly additionals: number;
  /** With the bits that EDNS adds. */
  readonly rcode: number;
  readonly isTruncated: boolean;
  /** The server says that it has verified the records. */
  readonly isAuthentic: boolean;
  /** An extended error of the server's, as an option. */
  readonly extendedError: Buffer | undefined;
}

/** One that has just come, with what says how long it lives. */
export interface FreshReply extends SharedReply {
  /** Nothing of the type that was asked for is in it. */
  readonly isNegative: boolean;
  /** The shortest TTL of all records; undefined without any. */
  readonly ttlSeconds: number | undefined;
  /** How long the SOA of a denial lets it live. */
  readonly soaSeconds: number | undefined;
}

/**
 * Looks into a reply, whose bytes stay where they are, and are good there as long as those. Undefined where it has no
 * question, and where a name cannot be read: one may have led into what was cut off behind the last record.
 */
export function readFreshReply(message: Buffer): FreshReply | undefined {
  const end = message.length;
  resetNameSteps(end);
  const nameEnd = u16(message, QUESTIONS_AT) === 1 ? skipName(message, 0, HEADER_BYTES, end) : -1;
  if (nameEnd === -1 || nameEnd + QUESTION_FIXED_BYTES > end) return undefined;
  const questionEnd = nameEnd + QUESTION_FIXED_BYTES;
  const asked = u16(message, nameEnd);
  if (!scanner.go(message, questionEnd, asked)) return undefined;
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

/** How many records it has, and so how many of its `ttlOffsets` count. */
export function recordsOf({ answers, authorities, additionals }: SharedReply): number {
  return answers + authorities + additionals;
}

/** One pass over the records of a message that is known to be readable. There is one for all messages. */
class ReplyScanner {
  readonly counts: [number, number, number] = [0, 0, 0];
  /** Those of the longest reply so far; the first `#ttlCount` are this one's. */
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
  go(message: Buffer, at: number, asked: number): boolean {
    this.counts.fill(0);
    this.#ttlCount = this.rcodeBits = 0;
    this.#start = this.end = at;
    this.hasAnswer = false;
    this.ttlSeconds = this.soaSeconds = this.extendedError = undefined;
    for (let section = 0; section < this.counts.length; section++) {
      for (let left = u16(message, countAt(section)); left > 0; left--) {
        const step = this.#read(message, section, asked);
        if (step !== "read") return step === "last";
      }
    }
    return true;
  }

  /** A copy: the next message has others. */
  get ttlOffsets(): number[] {
    return this.#ttlOffsets.slice(0, this.#ttlCount);
  }

  #read(message: Buffer, section: number, asked: number): "read" | "last" | "broken" {
    const fixed = skipName(message, 0, this.end, message.length);
    if (fixed === -1 || fixed + RECORD_FIXED_BYTES > message.length) return "broken";
    const type = u16(message, fixed);
    const dataEnd = fixed + RECORD_FIXED_BYTES + u16(message, fixed + DATA_LENGTH_AT);
    if (dataEnd > message.length) return "broken";
    if (type === TYPE.OPT && section === 2) {
      this.rcodeBits = (message[fixed + OPT_RCODE_AT] as number) << OPT_RCODE_SHIFT;
      this.extendedError = extendedErrorIn(message, fixed + RECORD_FIXED_BYTES, dataEnd);
      // Behind an OPT there is nothing that whoever asked us could need: additional records are extras (RFC 2181, 9).
      return "last";
    }
    const ttl = ttlOf(u32(message, fixed + TTL_AT));
    this.#ttlOffsets[this.#ttlCount++] = fixed + TTL_AT - this.#start;
    this.ttlSeconds = Math.min(this.ttlSeconds ?? ttl, ttl);
    if (section === 0 && type === asked) this.hasAnswer = true;
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
    const behind = at + OPTION_FIXED_BYTES + u16(message, at + 2);
    if (behind > end) return undefined;
    if (u16(message, at) === OPTION.EXTENDED_ERROR) return Buffer.from(message.subarray(at, behind));
    at = behind;
  }
  return undefined;
}
