/**
 * CacheEntry: accessor for one cached reply, which is a row in columns of numbers and cells of bytes. As objects, tens
 * of thousands of replies would be hundreds of thousands of objects for the garbage collector to copy; this way there
 * is a handful.
 *
 * An entry is a view of a row and is valid until the cache changes. Code that must wait keeps the key and looks it up
 * again.
 */
import { setU16, u16, copyBytes } from "../../base/dns/bytes.ts";
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import { Cells } from "./cells.ts";
import { type SharedReply, recordsOf } from "../wire/shared-reply.ts";
import { hashByte, hashNumber } from "../../base/model/label-table.ts";

/** Columns of 32-bit numbers. */
const WORDS = 10;
const HASH = 0;
const TYPE_AND_BITS = 1;
const SCOPE = 2;
const CELL = 3;
const HITS = 4;
const STATE = 5;
/** Length of the name; flags of the reply; its rcode. */
const NAME_BYTES_AND_FLAGS = 6;
const RECORDS_AND_ERROR_BYTES = 7;
const ANSWERS_AND_AUTHORITIES = 8;
const ADDITIONALS_AND_FAILURE_BYTES = 9;

/** Columns of times. */
const TIMES = 4;
const STORED = 0;
const EXPIRES = 1;
const FAILURE_UNTIL = 2;
const FAILED_UNTIL = 3;

/** Bytes per row, without its cells. */
export const COLUMNS_COST = WORDS * Int32Array.BYTES_PER_ELEMENT + TIMES * Float64Array.BYTES_PER_ELEMENT;

/** Flags of the state. */
const IS_REFRESHING = 1;
const WAS_ASKED_FOR_AD = 2;
const HAS_REPLY = 1 << 8;
const IS_TRUNCATED = 1 << 9;
const IS_AUTHENTIC = 1 << 10;
const RCODE_AT = 16;
const LOW_BYTE = 0xff;
const LOW = 0xffff;
const HIGH_AT = 16;
const OFFSET_BYTES = 2;
/** Larger than all parts of an entry together. */
const DRAFT_BYTES = 4 * 0x10000;

/** Storage for a number of entries and cells. Memory is only committed when it is written. */
export class Columns {
  readonly words: Int32Array;
  readonly times: Float64Array;
  readonly cells: Cells;

  constructor(rows: number, cells: number) {
    this.words = new Int32Array(rows * WORDS);
    this.times = new Float64Array(rows * TIMES);
    this.cells = new Cells(cells);
  }

  clear(): void {
    this.cells.clear();
  }

  reset(row: number): void {
    this.words.fill(0, row * WORDS, (row + 1) * WORDS);
    this.times.fill(0, row * TIMES, (row + 1) * TIMES);
  }

  /** Frees the cells of a row. */
  free(row: number): void {
    this.cells.free(this.words[row * WORDS + CELL] as number);
    this.words[row * WORDS + CELL] = 0;
  }

  /** Stores a draft in an empty row. */
  write(row: number, { hash, type, bits, scope }: CacheKey, { words, bytes, length }: EntryDraft): void {
    const at = row * WORDS;
    this.words[at + HASH] = hash;
    this.words[at + TYPE_AND_BITS] = type | (bits << HIGH_AT);
    this.words[at + SCOPE] = scope;
    for (let word = NAME_BYTES_AND_FLAGS; word < WORDS; word++) this.words[at + word] = words[word] as number;
    this.words[at + CELL] = this.cells.store(bytes, length);
  }
}

/**
 * EntryDraft: the content of an entry before it is stored: name, records, offsets of the TTLs, the server's extended
 * error, and why all servers failed.
 */
export class EntryDraft {
  readonly bytes = Buffer.allocUnsafeSlow(DRAFT_BYTES);
  readonly words = new Int32Array(WORDS);
  length = 0;

  compose({ name }: CacheKey, reply: SharedReply | undefined, failure: Uint8Array | undefined): void {
    this.words.fill(0);
    this.length = this.bytes.write(name, 0, "latin1");
    this.words[NAME_BYTES_AND_FLAGS] = this.length;
    if (reply !== undefined) this.#addReply(reply);
    if (failure !== undefined) this.#add(failure, 0, failure.length);
    this.words[ADDITIONALS_AND_FAILURE_BYTES] = (reply?.additionals ?? 0) | ((failure?.length ?? 0) << HIGH_AT);
  }

  #addReply(reply: SharedReply): void {
    const { bytes, start, length, ttlOffsets, answers, authorities, rcode, extendedError } = reply;
    const flags = HAS_REPLY | (reply.isTruncated ? IS_TRUNCATED : 0) | (reply.isAuthentic ? IS_AUTHENTIC : 0);
    this.words[NAME_BYTES_AND_FLAGS] = this.length | flags | (rcode << RCODE_AT);
    this.words[RECORDS_AND_ERROR_BYTES] = length | ((extendedError?.length ?? 0) << HIGH_AT);
    this.words[ANSWERS_AND_AUTHORITIES] = answers | (authorities << HIGH_AT);
    this.#add(bytes, start, start + length);
    for (let i = 0, count = recordsOf(reply); i < count; i++) {
      setU16(this.bytes, this.length, ttlOffsets[i] as number);
      this.length += OFFSET_BYTES;
    }
    if (extendedError !== undefined) this.#add(extendedError, 0, extendedError.length);
  }

  #add(from: Uint8Array, start: number, end: number): void {
    copyBytes(from, start, end, this.bytes, this.length);
    this.length += end - start;
  }
}

/** One buffer for the reply that is being read, whichever entry it belongs to. */
const replyBuffer = Buffer.allocUnsafeSlow(DRAFT_BYTES);
const view = {
  bytes: replyBuffer,
  start: 0,
  length: 0,
  questionEnd: 0,
  ttlOffsets: [] as number[],
  answers: 0,
  authorities: 0,
  additionals: 0,
  rcode: 0,
  isTruncated: false as boolean,
  isAuthentic: false as boolean,
  extendedError: undefined as Buffer | undefined,
} satisfies SharedReply;

export class CacheEntry {
  readonly #columns: Columns;
  row = 0;

  constructor(columns: Columns) {
    this.#columns = columns;
  }

  at(row: number): this {
    this.row = row;
    return this;
  }

  get key(): CacheKey {
    const typeAndBits = this.#word(TYPE_AND_BITS);
    const labels = Buffer.allocUnsafe(this.#nameBytes);
    this.#columns.cells.copy(this.#word(CELL), 0, labels.length, labels);
    const name = labels.toString("latin1");
    return { hash: this.hash, name, type: typeAndBits & LOW, bits: typeAndBits >>> HIGH_AT, scope: this.scope };
  }

  get isStored(): boolean {
    return this.#word(CELL) !== 0;
  }

  get hash(): number {
    return this.#word(HASH);
  }

  get scope(): number {
    return this.#word(SCOPE);
  }

  isOf(key: LookupKey): boolean {
    return (
      this.#word(HASH) === key.hash &&
      this.#word(TYPE_AND_BITS) === (key.type | (key.bits << HIGH_AT)) &&
      this.#word(SCOPE) === key.scope &&
      this.isNamed(key.name, key.length)
    );
  }

  isNamed(name: Uint8Array, length: number): boolean {
    return this.#nameBytes === length && this.#columns.cells.startsWith(this.#word(CELL), name, length);
  }

  /** It has a reply; otherwise servers have only failed so far. */
  get hasReply(): boolean {
    return (this.#word(NAME_BYTES_AND_FLAGS) & HAS_REPLY) !== 0;
  }

  get rcode(): number {
    return this.#word(NAME_BYTES_AND_FLAGS) >>> RCODE_AT;
  }

  /** Copies the reply into the shared buffer: valid until the next call for any entry. */
  readReply(): SharedReply | undefined {
    if (!this.hasReply) return undefined;
    const flags = this.#word(NAME_BYTES_AND_FLAGS);
    const nameBytes = this.#nameBytes;
    const sections = this.#word(ANSWERS_AND_AUTHORITIES);
    view.length = this.#word(RECORDS_AND_ERROR_BYTES) & LOW;
    view.questionEnd = HEADER_BYTES + nameBytes + 1 + QUESTION_FIXED_BYTES;
    view.answers = sections & LOW;
    view.authorities = sections >>> HIGH_AT;
    view.additionals = this.#word(ADDITIONALS_AND_FAILURE_BYTES) & LOW;
    view.rcode = this.rcode;
    view.isTruncated = (flags & IS_TRUNCATED) !== 0;
    view.isAuthentic = (flags & IS_AUTHENTIC) !== 0;
    const bytes = this.#replyBytes;
    this.#columns.cells.copy(this.#word(CELL), nameBytes, bytes, replyBuffer);
    let at = view.length;
    for (let i = 0, count = recordsOf(view); i < count; i++, at += OFFSET_BYTES) {
      view.ttlOffsets[i] = u16(replyBuffer, at);
    }
    view.extendedError = at === bytes ? undefined : replyBuffer.subarray(at, bytes);
    return view;
  }

  /** The reply in its own memory, for several waiters. */
  copyReply(): SharedReply | undefined {
    const reply = this.readReply();
    if (reply === undefined) return undefined;
    const { bytes, length, ttlOffsets, extendedError } = reply;
    return {
      ...reply,
      bytes: Buffer.from(bytes.subarray(0, length)),
      ttlOffsets: ttlOffsets.slice(0, recordsOf(reply)),
      extendedError: extendedError === undefined ? undefined : Buffer.from(extendedError),
    };
  }

  /** Why all servers failed, as an extended error. */
  get failure(): Uint8Array | undefined {
    const length = this.#word(ADDITIONALS_AND_FAILURE_BYTES) >>> HIGH_AT;
    if (length === 0) return undefined;
    const failure = Buffer.allocUnsafe(length);
    this.#columns.cells.copy(this.#word(CELL), this.#nameBytes + this.#replyBytes, length, failure);
    return failure;
  }

  get storedMs(): number {
    return this.#time(STORED);
  }

  set storedMs(ms: number) {
    this.#setTime(STORED, ms);
  }

  /** The time at which it expires; after that it may be served stale. */
  get expiresMs(): number {
    return this.#time(EXPIRES);
  }

  set expiresMs(ms: number) {
    this.#setTime(EXPIRES, ms);
  }

  /** Until then the servers are not queried again for it: all of them have just failed (RFC 9520). */
  get failureUntilMs(): number {
    return this.#time(FAILURE_UNTIL);
  }

  set failureUntilMs(ms: number) {
    this.#setTime(FAILURE_UNTIL, ms);
  }

  /** Until then a stale answer is served at once, and servers are queried in the background. */
  get failedUntilMs(): number {
    return this.#time(FAILED_UNTIL);
  }

  set failedUntilMs(ms: number) {
    this.#setTime(FAILED_UNTIL, ms);
  }

  get hits(): number {
    return this.#word(HITS);
  }

  set hits(count: number) {
    this.#setWord(HITS, count);
  }

  get isRefreshing(): boolean {
    return (this.#word(STATE) & IS_REFRESHING) !== 0;
  }

  set isRefreshing(is: boolean) {
    this.#setState(IS_REFRESHING, is);
  }

  /** The servers were asked with AD or DO, so the reply has AD if they have validated it. */
  get wasAskedForAd(): boolean {
    return (this.#word(STATE) & WAS_ASKED_FOR_AD) !== 0;
  }

  set wasAskedForAd(was: boolean) {
    this.#setState(WAS_ASKED_FOR_AD, was);
  }

  get #nameBytes(): number {
    return this.#word(NAME_BYTES_AND_FLAGS) & LOW_BYTE;
  }

  /** Records, offsets of their TTLs, and the server's extended error. */
  get #replyBytes(): number {
    const recordsAndError = this.#word(RECORDS_AND_ERROR_BYTES);
    const sections = this.#word(ANSWERS_AND_AUTHORITIES);
    const count = (sections & LOW) + (sections >>> HIGH_AT) + (this.#word(ADDITIONALS_AND_FAILURE_BYTES) & LOW);
    return (recordsAndError & LOW) + count * OFFSET_BYTES + (recordsAndError >>> HIGH_AT);
  }

  #word(word: number): number {
    return this.#columns.words[this.row * WORDS + word] as number;
  }

  #setWord(word: number, value: number): void {
    this.#columns.words[this.row * WORDS + word] = value;
  }

  #setState(flag: number, is: boolean): void {
    const state = this.#word(STATE);
    this.#setWord(STATE, is ? state | flag : state & ~flag);
  }

  #time(time: number): number {
    return this.#columns.times[this.row * TIMES + time] as number;
  }

  #setTime(time: number, ms: number): void {
    this.#columns.times[this.row * TIMES + time] = ms;
  }
}

/** Everything but the name: DO and CD change what is in a reply (RFC 4035, 3.2). */
interface KeyFields {
  /** The hash of the name and of all fields below. */
  readonly hash: number;
  readonly type: number;
  readonly bits: number;
  readonly scope: number;
}

/** What a reply is found by: the question, and the list of servers that it was sent to. */
export interface CacheKey extends KeyFields {
  /**
   * Lower-case wire labels, one character per byte: a key may be held for long, and a string is the cheapest object for
   * bytes.
   */
  readonly name: string;
}

/** A key whose name is still in the query's buffer; its first `length` bytes count. */
export interface LookupKey extends KeyFields {
  readonly name: Uint8Array;
  readonly length: number;
}

/** Keeps the hash within a small integer, which a Map holds without a box. */
const SMALL = 0x3fffffff;

/** The hash of a key; `nameHash` is that of the name alone. */
export function keyHash(nameHash: number, type: number, bits: number, scope: number): number {
  let hash = hashByte(hashByte(nameHash, type & 0xff), type >> 8);
  hash = hashNumber(hashNumber(hash, bits), scope);
  return hash & SMALL;
}

export function isSameKey(one: CacheKey, other: CacheKey): boolean {
  return one.type === other.type && one.bits === other.bits && one.scope === other.scope && one.name === other.name;
}
