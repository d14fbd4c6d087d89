/**
 * FamilyFilter: a reply without the addresses that a container is not given: A and AAAA records, and the hints of HTTPS and SVCB
 * records. Aliases stay, so that an answer with nothing else is an empty one. A reply that is written anew has its names again, because
 * pointers may have led into what is gone.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import {
  AD,
  CODES_AT,
  HEADER_BYTES,
  QUESTIONS_AT,
  SECTIONS,
  countAt,
  rcodeOf,
  setTruncated,
  MESSAGE_BYTES_MAX,
} from "../../base/dns/header.ts";
import { POINTER, POINTER_BYTES, pointerTarget, pointerTo } from "../../base/dns/name.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { DATA_LENGTH_AT, QUESTION_FIXED_BYTES, RECORD_FIXED_BYTES } from "../../base/dns/record.ts";
import type { AnswerFilter } from "../../query/verdict.ts";
import { LIMITS } from "../../base/limits.ts";
import { eachName } from "../../query/wire/data.ts";
import { resetNameSteps, skipName } from "../../query/wire/name.ts";
import { type Reach, isGiven } from "./reach.ts";

const PRIORITY_BYTES = 2;
const PARAMETER_FIXED_BYTES = 4;
const MANDATORY = 0;
const HINT_BYTES: Readonly<Record<number, 4 | 16>> = { 4: 4, 6: 16 };
/** Only in their data any client can follow a pointer (RFC 3597, 4). */
const COMPRESSED: ReadonlySet<number> = new Set([TYPE.NS, TYPE.CNAME, TYPE.SOA, TYPE.PTR, TYPE.MX]);
/** The highest offset that a pointer can hold. */
const POINTER_MAX = 0x3fff;

interface RecordSpan {
  readonly section: number;
  readonly at: number;
  readonly type: number;
  readonly data: number;
  readonly end: number;
}

/** Some hints of a service are taken out. */
interface Parameter {
  readonly key: number;
  readonly bytes: Uint8Array;
}

/** A message is written here, and copied before the next one is. */
const out = Buffer.allocUnsafeSlow(MESSAGE_BYTES_MAX);

export class FamilyFilter implements AnswerFilter {
  readonly text: string;
  readonly #reach: Reach;
  #message: Uint8Array = out;
  #length = 0;
  #hasRoom = true;
  /** Octets that names may still take: a few octets can expand to many. */
  #octetsLeft = 0;
  /** Where names begin that were written in full. */
  readonly #names = new Map<string, number>();

  constructor(reach: Reach, text: string) {
    this.#reach = reach;
    this.text = text;
  }

  apply(reply: Uint8Array, limit: number): Uint8Array | undefined {
    if (reply.length < HEADER_BYTES || rcodeOf(reply) !== RCODE.NOERROR || u16(reply, QUESTIONS_AT) !== 1)
      return undefined;
    this.#message = reply;
    resetNameSteps(reply.length);
    const nameEnd = skipName(reply, 0, HEADER_BYTES, reply.length);
    if (nameEnd === -1) return undefined;
    const records = this.#read(nameEnd + QUESTION_FIXED_BYTES);
    if (records === undefined || !records.some((each) => this.#isChanged(each))) return undefined;
    return this.#write(records, nameEnd, Math.min(limit, MESSAGE_BYTES_MAX));
  }

  /** Undefined if they cannot be read, or may not be changed. */
  #read(start: number): RecordSpan[] | undefined {
    const message = this.#message;
    const records: RecordSpan[] = [];
    let at = start;
    for (let section = 0; section < SECTIONS; section++) {
      // A truncated reply may announce more than it has.
      for (let left = u16(message, countAt(section)); left > 0 && at < message.length; left--) {
        const fixed = skipName(message, 0, at, message.length);
        const data = fixed + RECORD_FIXED_BYTES;
        if (fixed === -1 || data > message.length) return undefined;
        const type = u16(message, fixed);
        const end = data + u16(message, fixed + DATA_LENGTH_AT);
        if (end > message.length || type === TYPE.TSIG || type === TYPE.SIG) return undefined;
        records.push({ section, at, type, data, end });
        at = end;
      }
    }
    return records;
  }

  #isChanged(record: RecordSpan): boolean {
    return this.#isTakenOut(record) || this.#parametersLeft(record) !== undefined;
  }

  #isTakenOut({ type, data, end }: RecordSpan): boolean {
    const size = type === TYPE.A ? 4 : type === TYPE.AAAA ? 16 : 0;
    return size > 0 && end - data === size && !isGiven(this.#message.subarray(data, end), this.#reach);
  }

  /** Undefined if all stay, or it has none. */
  #parametersLeft({ type, data, end }: RecordSpan): readonly Parameter[] | undefined {
    if ((type !== TYPE.HTTPS && type !== TYPE.SVCB) || data + PRIORITY_BYTES >= end) return undefined;
    const message = this.#message;
    const left: Parameter[] = [];
    const gone = new Set<number>();
    let isChanged = false;
    let at = skipName(message, 0, data + PRIORITY_BYTES, end);
    if (at === -1) return undefined;
    while (at < end) {
      const value = at + PARAMETER_FIXED_BYTES;
      if (value > end) return undefined;
      const key = u16(message, at);
      at = value + u16(message, at + 2);
      if (at > end) return undefined;
      const bytes = message.subarray(value, at);
      const hints = this.#hintsLeft(key, bytes);
      isChanged ||= hints.length < bytes.length;
      if (hints.length === 0 && bytes.length > 0) gone.add(key);
      else left.push({ key, bytes: hints });
    }
    if (!isChanged) return undefined;
    return left.flatMap(({ key, bytes }) => {
      // Clients ignore a record without a parameter that it calls mandatory.
      const kept = key === MANDATORY ? withoutKeys(bytes, gone) : bytes;
      return key === MANDATORY && kept.length === 0 ? [] : [{ key, bytes: kept }];
    });
  }

  #hintsLeft(key: number, bytes: Uint8Array): Uint8Array {
    const size = HINT_BYTES[key];
    if (size === undefined || bytes.length % size !== 0) return bytes;
    const all = Array.from({ length: bytes.length / size }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    const given = all.filter((each) => isGiven(each, this.#reach));
    return given.length === all.length ? bytes : Buffer.concat(given);
  }

  /** As many records as fit. */
  #write(records: readonly RecordSpan[], nameEnd: number, limit: number): Uint8Array | undefined {
    const message = this.#message;
    const opt = records.find(({ section, type }) => section === 2 && type === TYPE.OPT);
    const room = limit - (opt === undefined ? 0 : opt.end - opt.at);
    const questionEnd = nameEnd + QUESTION_FIXED_BYTES;
    if (questionEnd > room) return undefined;
    this.#names.clear();
    this.#hasRoom = true;
    this.#octetsLeft = message.length * LIMITS.nameStepsPerByte;
    out.set(message.subarray(0, questionEnd));
    this.#length = questionEnd;
    this.#names.set(this.#labels(HEADER_BYTES), HEADER_BYTES);
    const counts = [0, 0, 0];
    let isWhole = true;
    for (const record of records) {
      if (record === opt || this.#isTakenOut(record)) continue;
      const before = this.#length;
      if (!this.#record(record) || this.#octetsLeft < 0) return undefined;
      isWhole = this.#hasRoom && this.#length <= room;
      if (!isWhole) {
        this.#length = before;
        break;
      }
      counts[record.section] = (counts[record.section] as number) + 1;
    }
    if (opt !== undefined) {
      this.#hasRoom = true;
      this.#copy(message.subarray(opt.at, opt.end));
      counts[2] = (counts[2] as number) + 1;
    }
    for (const [section, count] of counts.entries()) setU16(out, countAt(section), count);
    if (!isWhole) setTruncated(out);
    // What is left is not what a server has validated.
    out[CODES_AT] = (out[CODES_AT] as number) & ~AD;
    return out.subarray(0, this.#length);
  }

  /** Returns whether its data could be read. */
  #record(record: RecordSpan): boolean {
    const { at, type, data, end } = record;
    const message = this.#message;
    this.#name(at, true);
    this.#copy(message.subarray(data - RECORD_FIXED_BYTES, data));
    const begin = this.#length;
    const parameters = this.#parametersLeft(record);
    let copied = data;
    const isReadable =
      parameters === undefined
        ? eachName(type, message, data, end, (nameAt, after) => {
            this.#copy(message.subarray(copied, nameAt));
            this.#name(nameAt, COMPRESSED.has(type));
            copied = after;
          })
        : this.#service(data, parameters);
    if (parameters === undefined) this.#copy(message.subarray(copied, end));
    if (this.#hasRoom) setU16(out, begin - 2, this.#length - begin);
    return isReadable;
  }

  #service(data: number, parameters: readonly Parameter[]): boolean {
    this.#copy(this.#message.subarray(data, data + PRIORITY_BYTES));
    this.#name(data + PRIORITY_BYTES, false);
    for (const { key, bytes } of parameters) {
      const fixed = Buffer.alloc(PARAMETER_FIXED_BYTES);
      setU16(fixed, 0, key);
      setU16(fixed, 2, bytes.length);
      this.#copy(fixed);
      this.#copy(bytes);
    }
    return true;
  }

  #name(at: number, isCompressed: boolean): void {
    const labels = this.#labels(at);
    this.#octetsLeft -= labels.length;
    const known = isCompressed ? this.#names.get(labels) : undefined;
    const isShort = known !== undefined && labels !== "";
    if (!isShort && this.#length <= POINTER_MAX) this.#names.set(labels, this.#length);
    const bytes = isShort ? Buffer.alloc(POINTER_BYTES) : Buffer.from(`${labels}\0`, "latin1");
    if (isShort) setU16(bytes, 0, pointerTo(known));
    this.#copy(bytes);
  }

  /** Of a name that could be skipped: without the terminating zero, one character for each octet. */
  #labels(start: number): string {
    const message = this.#message;
    let text = "";
    for (let at = start; ;) {
      const size = message[at] as number;
      if (size === 0) return text;
      if (size >= POINTER) {
        at = pointerTarget(message, at);
        continue;
      }
      for (const after = at + 1 + size; at < after; at++) text += String.fromCharCode(message[at] as number);
    }
  }

  #copy(bytes: Uint8Array): void {
    this.#hasRoom &&= this.#length + bytes.length <= out.length;
    if (!this.#hasRoom) return;
    out.set(bytes, this.#length);
    this.#length += bytes.length;
  }
}

function withoutKeys(keys: Uint8Array, gone: ReadonlySet<number>): Uint8Array {
  const all = Array.from({ length: keys.length >> 1 }, (_, index) => keys.subarray(index * 2, index * 2 + 2));
  return Buffer.concat(all.filter((key) => !gone.has(u16(key, 0))));
}
