/**
 * Scrub: removes the records of a reply that do not belong to its question. A reply may contain anything, and the
 * client may cache all of it. So the answer section is limited to records of the queried name and of the names that its
 * CNAMEs and DNAMEs point to, in any order; the authority section to zones that contain those names; the additional
 * section to names that the other records mention. A reply of which nothing is left is no answer.
 *
 * Almost all replies have nothing to remove, which one pass shows without reading a name. A reply that is rebuilt has
 * its names uncompressed, because pointers may point into removed records.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import {
  ADDITIONALS_AT,
  ANSWERS_AT,
  AUTHORITIES_AT,
  HEADER_BYTES,
  QUESTIONS_AT,
  SECTIONS,
  countAt,
  rcodeOf,
  MESSAGE_BYTES_MAX,
} from "../../base/dns/header.ts";
import { FOLD, NAME_BYTES_MAX, POINTER, POINTER_BYTES, pointerTarget } from "../../base/dns/name.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE, isMetaType } from "../../base/dns/record-type.ts";
import {
  CLASS,
  CLASS_AT,
  DATA_LENGTH_AT,
  QUESTION_FIXED_BYTES,
  QUESTION_POINTER,
  RECORD_FIXED_BYTES,
} from "../../base/dns/record.ts";
import { LIMITS } from "../../base/limits.ts";
import { eachName } from "./data.ts";
import { resetNameSteps, skipName } from "./name.ts";
import { Records, isReadable } from "./records.ts";
import { ERROR_CODE_BYTES } from "../../base/dns/extended-error.ts";
import { OPTION, OPTION_FIXED_BYTES } from "../../base/dns/opt.ts";

/** DNSSEC records, which may be owned by other names of the zone. */
const PROOFS = new Set<number>([TYPE.DS, TYPE.RRSIG, TYPE.NSEC, TYPE.NSEC3]);

const ANOTHER_NAME = "the reply is about another name";
const UNREADABLE = "the reply cannot be parsed";

/** The parts of one record, as offsets. */
interface RecordSpan {
  readonly section: number;
  readonly at: number;
  readonly type: number;
  readonly data: number;
  readonly end: number;
  isKept: boolean;
}

/**
 * Returns the message itself, or what is left of it, or the reason why it is no answer as a string. The message must be
 * readable.
 */
export function scrub(message: Buffer): Buffer | string {
  if (u16(message, QUESTIONS_AT) !== 1) return message;
  resetNameSteps(message.length, true);
  const nameEnd = skipName(message, 0, HEADER_BYTES, message.length);
  if (nameEnd === -1 || nameEnd + QUESTION_FIXED_BYTES > message.length) return UNREADABLE;
  const qtype = u16(message, nameEnd);
  // The answer to a meta query is not a chain.
  if (isMetaType(qtype) || u16(message, nameEnd + CLASS_AT) === CLASS.ANY) return message;
  if (isTrivial(message, nameEnd, qtype)) return message;
  return new Scrubber(message, nameEnd, qtype).run();
}

/** Whether all answers are owned by the queried name: no alias, no referral, and nothing else but an SOA or an OPT. */
function isTrivial(message: Buffer, nameEnd: number, qtype: number): boolean {
  const answers = u16(message, ANSWERS_AT);
  const authorities = u16(message, AUTHORITIES_AT);
  const additionals = u16(message, ADDITIONALS_AT);
  if (answers + authorities + additionals > LIMITS.scrubPlainRecords) return false;
  const end = message.length;
  let at = nameEnd + QUESTION_FIXED_BYTES;
  for (let index = 0, count = answers + authorities + additionals; index < count; index++) {
    const isAnswer = index < answers;
    const isAdditional = index >= answers + authorities;
    const first = message[at] as number;
    // A name of one pointer, or the root.
    const isPointer = first >= POINTER;
    const target = isPointer ? pointerTarget(message, at) : 0;
    const fixed = isPointer ? at + POINTER_BYTES : at + 1;
    if ((first !== 0 && !isPointer) || fixed + RECORD_FIXED_BYTES > end) return false;
    const type = u16(message, fixed);
    if (isAnswer && (target !== HEADER_BYTES || type !== qtype)) return false;
    if (isAnswer && u16(message, nameEnd + CLASS_AT) !== u16(message, fixed + CLASS_AT)) return false;
    if (!isAnswer && !isAdditional) {
      if (type !== TYPE.SOA || target >= nameEnd) return false;
    }
    if (isAdditional && type !== TYPE.OPT) return false;
    at = fixed + RECORD_FIXED_BYTES + u16(message, fixed + DATA_LENGTH_AT);
    if (at > end) return false;
  }
  return true;
}

/** Scrubs one reply that is not trivial. */
class Scrubber {
  readonly #message: Buffer;
  readonly #nameEnd: number;
  readonly #qtype: number;
  readonly #records: RecordSpan[] = [];
  readonly #names = new Map<number, string>();
  /** The queried name, and the names that its aliases point to. */
  readonly #chain = new Set<string>();
  /** The owners of the DNAMEs that were followed. */
  readonly #rewriters = new Set<string>();
  /** Remaining octets for uncompressed names: a few octets can expand to many. */
  #octetsLeft: number;

  constructor(message: Buffer, nameEnd: number, qtype: number) {
    this.#message = message;
    this.#nameEnd = nameEnd;
    this.#qtype = qtype;
    this.#octetsLeft = Math.max(message.length, LIMITS.scrubOctetsMin) * LIMITS.nameStepsPerByte;
  }

  run(): Buffer | string {
    if (!this.#readRecords()) return UNREADABLE;
    try {
      const why = this.#follow() ?? this.#upwardReferral();
      if (why !== undefined) return why;
      this.#keepAnswers();
      const isEmptied = this.#of(0).length > 0 && this.#of(0).every(({ isKept }) => !isKept);
      if (isEmptied && rcodeOf(this.#message) === RCODE.NOERROR) return ANOTHER_NAME;
      this.#keepAuthorities();
      this.#keepAdditionals();
      return this.#records.every(({ isKept }) => isKept) ? this.#message : this.#rebuild();
    } catch (error) {
      if (error instanceof NamesTooLong) return UNREADABLE;
      throw error;
    }
  }

  #readRecords(): boolean {
    const message = this.#message;
    let at = this.#nameEnd + QUESTION_FIXED_BYTES;
    for (let section = 0; section < SECTIONS; section++) {
      for (let left = u16(message, countAt(section)); left > 0; left--) {
        const fixed = skipName(message, 0, at, message.length);
        if (fixed === -1 || fixed + RECORD_FIXED_BYTES > message.length) return false;
        const data = fixed + RECORD_FIXED_BYTES;
        const end = data + u16(message, fixed + DATA_LENGTH_AT);
        if (end > message.length) return false;
        this.#records.push({ section, at, type: u16(message, fixed), data, end, isKept: false });
        at = end;
      }
    }
    return true;
  }

  #of(section: number): RecordSpan[] {
    return this.#records.filter((record) => record.section === section);
  }

  /** Collects the names of the chain; returns why it is invalid, or undefined. */
  #follow(): string | undefined {
    const cnames = new Map<string, RecordSpan>();
    const dnames = new Map<string, RecordSpan>();
    const ends = new Set<string>();
    for (const record of this.#of(0)) {
      if (!this.#isOfClass(record)) continue;
      if (record.type === this.#qtype) ends.add(this.#name(record.at));
      else if (record.type === TYPE.CNAME) cnames.set(this.#name(record.at), record);
      else if (record.type === TYPE.DNAME) dnames.set(this.#name(record.at), record);
    }
    let current = this.#name(HEADER_BYTES);
    for (let links = 0; ; links++) {
      if (this.#chain.has(current)) return "the reply has a loop of aliases";
      if (links > LIMITS.scrubAliases) return "the reply has too many aliases";
      this.#chain.add(current);
      if (ends.has(current)) return undefined;
      const synthesized = this.#substitute(current, dnames);
      const cname = cnames.get(current);
      const target = cname === undefined ? synthesized : this.#name(cname.data);
      if (synthesized !== undefined && target !== synthesized)
        return "the reply has a CNAME that does not match its DNAME";
      if (target === undefined) return undefined;
      current = target;
    }
  }

  /** Applies the DNAME above a name (RFC 6672). */
  #substitute(name: string, dnames: ReadonlyMap<string, RecordSpan>): string | undefined {
    if (dnames.size === 0) return undefined;
    for (const owner of ancestorsOf(name)) {
      const dname = dnames.get(owner);
      if (dname === undefined) continue;
      this.#rewriters.add(owner);
      const target = name.slice(0, name.length - owner.length) + this.#name(dname.data);
      if (target.length > NAME_BYTES_MAX) throw new NamesTooLong();
      return target;
    }
    return undefined;
  }

  /** Detects the referral of a server without data for the name: to the root, or to a zone unrelated to the name. */
  #upwardReferral(): string | undefined {
    const authorities = this.#of(1);
    const servers = authorities.filter(({ type }) => type === TYPE.NS);
    const isReferral =
      this.#of(0).length === 0 &&
      servers.length > 0 &&
      authorities.every(({ type }) => type !== TYPE.SOA) &&
      rcodeOf(this.#message) === RCODE.NOERROR;
    const qname = this.#name(HEADER_BYTES);
    if (!isReferral || qname === "") return undefined;
    const zones = new Set([qname, ...ancestorsOf(qname)]);
    const isBelow = servers.some(({ at }) => this.#name(at) !== "" && zones.has(this.#name(at)));
    return isBelow ? undefined : "the reply is an upward referral";
  }

  #keepAnswers(): void {
    for (const record of this.#of(0)) {
      const owner = this.#name(record.at);
      record.isKept = this.#isOfClass(record) && (this.#chain.has(owner) || this.#rewriters.has(owner));
    }
  }

  #keepAuthorities(): void {
    const authorities = this.#of(1);
    if (authorities.length === 0) return;
    const zones = new Set([...this.#chain].flatMap((name) => [name, ...ancestorsOf(name)]));
    for (const record of authorities) {
      record.isKept = PROOFS.has(record.type) || zones.has(this.#name(record.at));
    }
  }

  #keepAdditionals(): void {
    const additionals = this.#of(2);
    const isTransport = ({ type }: RecordSpan): boolean => type === TYPE.OPT;
    if (additionals.every(isTransport)) {
      for (const record of additionals) record.isKept = true;
      return;
    }
    const mentioned = new Set(this.#chain);
    for (const { isKept, section, type, data, end } of this.#records) {
      if (isKept && section < 2) this.#eachName(type, data, end, (at) => mentioned.add(this.#name(at)));
    }
    for (const record of additionals) record.isKept = isTransport(record) || mentioned.has(this.#name(record.at));
  }

  /** Builds a new message of the records that are kept. */
  #rebuild(): Buffer | string {
    const questionEnd = this.#nameEnd + QUESTION_FIXED_BYTES;
    const out = new MessageWriter(this.#message, this.#name(HEADER_BYTES), (at) => this.#name(at));
    out.copy(0, questionEnd);
    const counts = [0, 0, 0];
    for (const { section, at, type, data, end, isKept } of this.#records) {
      if (!isKept) continue;
      counts[section] = (counts[section] as number) + 1;
      out.name(at);
      out.copy(data - RECORD_FIXED_BYTES, data);
      const begin = out.length;
      let copied = data;
      this.#eachName(type, data, end, (nameAt, after) => {
        out.copy(copied, nameAt);
        out.name(nameAt);
        copied = after;
      });
      out.copy(copied, end);
      out.setDataLength(begin);
    }
    return out.message(counts) ?? "the scrubbed reply is too long for a message";
  }

  /** Names that were read before count against the step limit again. */
  #eachName(type: number, data: number, end: number, visit: (at: number, after: number) => void): void {
    resetNameSteps(this.#message.length, true);
    if (!eachName(type, this.#message, data, end, visit)) throw new NamesTooLong();
  }

  /** Whether the class of the record is that of the question. */
  #isOfClass({ data }: RecordSpan): boolean {
    const at = data - RECORD_FIXED_BYTES + CLASS_AT;
    return u16(this.#message, at) === u16(this.#message, this.#nameEnd + CLASS_AT);
  }

  /** A name in lower case, without the root label, one character per octet. */
  #name(at: number): string {
    const known = this.#names.get(at);
    if (known !== undefined) return known;
    const message = this.#message;
    let cursor = at;
    let length = 0;
    for (;;) {
      const size = message[cursor] as number;
      if (size === 0) break;
      if (size >= POINTER) {
        const target = pointerTarget(message, cursor);
        const rest = length === 0 ? this.#names.get(target) : undefined;
        if (rest !== undefined) return this.#cacheName(at, rest);
        cursor = target;
        continue;
      }
      for (const after = cursor + size + 1; cursor < after; cursor++) {
        folded[length++] = FOLD[message[cursor] as number] as number;
      }
      this.#octetsLeft -= size + 1;
      if (this.#octetsLeft < 0) throw new NamesTooLong();
    }
    return this.#cacheName(at, folded.toString("latin1", 0, length));
  }

  #cacheName(at: number, name: string): string {
    this.#names.set(at, name);
    // All pointers to one offset mean the same name.
    if ((this.#message[at] as number) >= POINTER) this.#names.set(pointerTarget(this.#message, at), name);
    return name;
  }
}

/** The names of a reply exceed the limit of steps or octets. */
class NamesTooLong extends Error {}

/** Names are assembled here; any valid name fits. */
const folded = Buffer.alloc(NAME_BYTES_MAX + 2);
/** The new message is assembled here, and then copied. */
const assembled = Buffer.allocUnsafeSlow(MESSAGE_BYTES_MAX);

/** Assembles a message from parts of another one. */
class MessageWriter {
  readonly #from: Buffer;
  readonly #question: string;
  readonly #nameAt: (at: number) => string;
  #isTooLong = false;
  length = 0;

  constructor(from: Buffer, question: string, nameAt: (at: number) => string) {
    this.#from = from;
    this.#question = question;
    this.#nameAt = nameAt;
  }

  copy(start: number, end: number): void {
    if (!this.#hasRoom(end - start)) return;
    this.#from.copy(assembled, this.length, start, end);
    this.length += end - start;
  }

  /** Writes a name uncompressed, in its letter case; as a pointer if it is the question's. */
  name(at: number): void {
    const name = this.#nameAt(at);
    if (name !== "" && name === this.#question) {
      if (!this.#hasRoom(POINTER_BYTES)) return;
      setU16(assembled, this.length, QUESTION_POINTER);
      this.length += POINTER_BYTES;
      return;
    }
    for (let cursor = at; ;) {
      const size = this.#from[cursor] as number;
      if (size >= POINTER) {
        cursor = pointerTarget(this.#from, cursor);
        continue;
      }
      this.copy(cursor, cursor + size + 1);
      if (size === 0 || this.#isTooLong) return;
      cursor += size + 1;
    }
  }

  /** Writes the data length of the record whose data began at `begin`. */
  setDataLength(begin: number): void {
    if (!this.#isTooLong) setU16(assembled, begin - 2, this.length - begin);
  }

  message(counts: readonly number[]): Buffer | undefined {
    if (this.#isTooLong) return undefined;
    for (const [section, count] of counts.entries()) setU16(assembled, countAt(section), count);
    return Buffer.from(assembled.subarray(0, this.length));
  }

  #hasRoom(bytes: number): boolean {
    if (this.length + bytes > MESSAGE_BYTES_MAX) this.#isTooLong = true;
    return !this.#isTooLong;
  }
}

/** The ancestors of a name, the nearest first and the root last. */
function ancestorsOf(name: string): string[] {
  const above: string[] = [];
  for (let at = 0; at < name.length;) {
    at += name.charCodeAt(at) + 1;
    above.push(name.slice(at));
  }
  return above;
}

/**
 * The readable part of an upstream reply. Docker parses a reply and writes it again, so its clients get
 * correct counts and no trailing bytes; the records themselves stay unchanged. Read strictly, it has no signature either, which
 * is between the server and us, and extended errors that can be printed.
 */
export interface UpstreamReply {
  readonly message: Buffer;
  /** It has the upper bits from EDNS. */
  readonly rcode: number;
  /** The last record is a TSIG. */
  readonly isSigned: boolean;
}

const records = new Records();

/**
 * Undefined if it cannot be parsed, as Docker's library or as a strict parser does. The reply is corrected in place if
 * possible.
 */
export function readReply(message: Buffer, isStrict = false): UpstreamReply | undefined {
  if (!isReadable(message, records, isStrict)) return undefined;
  const { counts, end, missing, optRcode, lastType } = records;
  const isSigned = lastType === TYPE.TSIG;
  // Completed, it would exceed the size of a message and could not be sent.
  if (message.length + missing > MESSAGE_BYTES_MAX) return undefined;
  let isCorrected = false;
  for (let section = 0; section < counts.length; section++) {
    const at = countAt(section);
    const count = counts[section] as number;
    isCorrected ||= u16(message, at) !== count;
    setU16(message, at, count);
  }
  // A name may point into the header, which has changed.
  if (isCorrected && !isReadable(message, records, isStrict)) return undefined;
  if (isStrict) cleanErrorTexts(message, records.optDataAt, records.optDataEnd);
  // A bare header has no question, whatever its count says.
  if (message.length === HEADER_BYTES) setU16(message, QUESTIONS_AT, 0);
  const rcode = optRcode | rcodeOf(message);
  if (isStrict && (isSigned || lastType === TYPE.SIG)) {
    const unsigned = withoutLast(message);
    return isReadable(unsigned, records, true) ? { message: unsigned, rcode, isSigned: false } : undefined;
  }
  if (missing > 0) return { message: Buffer.concat([message, Buffer.alloc(missing)]), rcode, isSigned };
  return { message: end === message.length ? message : message.subarray(0, end), rcode, isSigned };
}

/** The message without its last record, a signature. */
function withoutLast(message: Buffer): Buffer {
  setU16(message, ADDITIONALS_AT, (records.counts[SECTIONS - 1] as number) - 1);
  return message.subarray(0, records.lastAt);
}

/** Control characters manipulate terminals, bidirectional ones reverse what is read. */
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}]/gu;
const NOT_ASCII = /[^ -~]/g;

/**
 * The text of an extended error that a server has sent (RFC 8914). It ends up in logs, terminals and pages, here and at
 * the client.
 * Replaces, in the options from `start`, what no text may contain, with question marks.
 */
function cleanErrorTexts(message: Buffer, start: number, end: number): void {
  for (let at = start; at + OPTION_FIXED_BYTES <= end;) {
    const after = at + OPTION_FIXED_BYTES + u16(message, at + 2);
    if (after > end) return;
    if (u16(message, at) === OPTION.EXTENDED_ERROR) {
      cleanText(message.subarray(Math.min(after, at + OPTION_FIXED_BYTES + ERROR_CODE_BYTES), after));
    }
    at = after;
  }
}

/** The length stays the same, because offsets in the message depend on it. */
function cleanText(bytes: Buffer): void {
  const text = bytes.toString();
  const clean = bytes.equals(Buffer.from(text))
    ? text.replaceAll(UNPRINTABLE, replaced)
    : bytes.toString("latin1").replaceAll(NOT_ASCII, "?");
  if (clean !== text) bytes.write(clean);
}

function replaced(character: string): string {
  return "?".repeat(Buffer.byteLength(character));
}
