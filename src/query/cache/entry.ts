/**
 * Entry: what is kept of one reply, at its place in columns of numbers and cells of bytes. Tens of thousands of replies
 * would be hundreds of thousands of objects, which the collector copies while everybody waits; of these it sees a handful.
 *
 * An Entry is a look at a place, good until the cache is changed. Whoever has to wait keeps the key, and looks again.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import { copyBytes } from "../../base/lib/bytes.ts";
import { Cells } from "../../base/lib/cells.ts";
import { type SharedReply, recordsOf } from "../wire/shared-reply.ts";
import type { CacheKey, LookupKey } from "./key.ts";

/** The whole numbers of an entry. */
const WORDS = 10;
const HASH = 0;
const TYPE_AND_BITS = 1;
const SCOPE = 2;
const CELL = 3;
const HITS = 4;
const IS_REFRESHING = 5;
/** Length of the name; what the reply says in its flags; its rcode. */
const NAME_BYTES_AND_FLAGS = 6;
const RECORDS_AND_ERROR_BYTES = 7;
const ANSWERS_AND_AUTHORITIES = 8;
const ADDITIONALS_AND_FAILURE_BYTES = 9;

/** Its times. */
const TIMES = 4;
const STORED = 0;
const EXPIRES = 1;
const FAILURE_UNTIL = 2;
const FAILED_UNTIL = 3;

/** What a place takes, without its cells. */
export const COLUMNS_COST = WORDS * Int32Array.BYTES_PER_ELEMENT + TIMES * Float64Array.BYTES_PER_ELEMENT;

const HAS_REPLY = 1 << 8;
const IS_TRUNCATED = 1 << 9;
const IS_AUTHENTIC = 1 << 10;
const RCODE_AT = 16;
const LOW_BYTE = 0xff;
const LOW = 0xffff;
const HIGH_AT = 16;
const OFFSET_BYTES = 2;
/** More than all parts of an entry can have together. */
const IMAGE_BYTES = 4 * 0x10000;

/** Places for so many entries, with so many cells. Only what is written becomes memory. */
export class Columns {
  readonly words: Int32Array;
  readonly times: Float64Array;
  readonly cells: Cells;

  constructor(places: number, cells: number) {
    this.words = new Int32Array(places * WORDS);
    this.times = new Float64Array(places * TIMES);
    this.cells = new Cells(cells);
  }

  clear(): void {
    this.cells.clear();
  }

  /** A place becomes an entry of nothing yet. */
  begin(place: number): void {
    this.words.fill(0, place * WORDS, (place + 1) * WORDS);
    this.times.fill(0, place * TIMES, (place + 1) * TIMES);
  }

  /** What a place keeps is given back. */
  empty(place: number): void {
    this.cells.free(this.words[place * WORDS + CELL] as number);
    this.words[place * WORDS + CELL] = 0;
  }

  /** Puts what was drawn up into a place that is empty. */
  fill(place: number, { hash, type, bits, scope }: CacheKey, { words, bytes, length }: EntryDraft): void {
    const at = place * WORDS;
    this.words[at + HASH] = hash;
    this.words[at + TYPE_AND_BITS] = type | (bits << HIGH_AT);
    this.words[at + SCOPE] = scope;
    for (let word = NAME_BYTES_AND_FLAGS; word < WORDS; word++) this.words[at + word] = words[word] as number;
    this.words[at + CELL] = this.cells.store(bytes, length);
  }
}

/**
 * What an entry is to keep, before it has its place: name, records, where the TTLs stand in them, the server's error, and
 * why all servers failed.
 */
export class EntryDraft {
  readonly bytes = Buffer.allocUnsafeSlow(IMAGE_BYTES);
  readonly words = new Int32Array(WORDS);
  length = 0;

  compose({ name }: CacheKey, reply: SharedReply | undefined, failure: Uint8Array | undefined): void {
    this.words.fill(0);
    this.length = this.bytes.write(name, 0, "latin1");
    this.words[NAME_BYTES_AND_FLAGS] = this.length;
    if (reply !== undefined) this.#drawReply(reply);
    if (failure !== undefined) this.#add(failure, 0, failure.length);
    this.words[ADDITIONALS_AND_FAILURE_BYTES] = (reply?.additionals ?? 0) | ((failure?.length ?? 0) << HIGH_AT);
  }

  #drawReply(reply: SharedReply): void {
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

/** One place for the reply that is looked at, whichever that is. */
const gathered = Buffer.allocUnsafeSlow(IMAGE_BYTES);
const view = {
  bytes: gathered,
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

  at(place: number): this {
    this.row = place;
    return this;
  }

  get key(): CacheKey {
    const typeAndBits = this.#word(TYPE_AND_BITS);
    const labels = Buffer.allocUnsafe(this.#nameBytes);
    this.#columns.cells.copy(this.#word(CELL), 0, labels.length, labels);
    const name = labels.toString("latin1");
    return { hash: this.hash, name, type: typeAndBits & LOW, bits: typeAndBits >>> HIGH_AT, scope: this.scope };
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

  /** It has a reply; servers may also only have failed so far. */
  get hasReply(): boolean {
    return (this.#word(NAME_BYTES_AND_FLAGS) & HAS_REPLY) !== 0;
  }

  get rcode(): number {
    return this.#word(NAME_BYTES_AND_FLAGS) >>> RCODE_AT;
  }

  /** The reply, in the one place for all: good until any entry's reply is looked at. */
  get reply(): SharedReply | undefined {
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
    this.#columns.cells.copy(this.#word(CELL), nameBytes, bytes, gathered);
    let at = view.length;
    for (let i = 0, count = recordsOf(view); i < count; i++, at += OFFSET_BYTES) {
      view.ttlOffsets[i] = u16(gathered, at);
    }
    view.extendedError = at === bytes ? undefined : gathered.subarray(at, bytes);
    return view;
  }

  /** The same for whoever hands it to several. */
  copyReply(): SharedReply | undefined {
    const reply = this.reply;
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

  /** When it came. */
  get storedMs(): number {
    return this.#time(STORED);
  }

  set storedMs(ms: number) {
    this.#setTime(STORED, ms);
  }

  /** When it is over; it may stand in for failing servers after that. */
  get expiresMs(): number {
    return this.#time(EXPIRES);
  }

  set expiresMs(ms: number) {
    this.#setTime(EXPIRES, ms);
  }

  /** Until then no server is asked again for it: all of them have just failed (RFC 9520). */
  get failureUntilMs(): number {
    return this.#time(FAILURE_UNTIL);
  }

  set failureUntilMs(ms: number) {
    this.#setTime(FAILURE_UNTIL, ms);
  }

  /** Until then the reply that is over stands in at once, and servers are asked beside. */
  get failedUntilMs(): number {
    return this.#time(FAILED_UNTIL);
  }

  set failedUntilMs(ms: number) {
    this.#setTime(FAILED_UNTIL, ms);
  }

  /** How often it was the answer. */
  get hits(): number {
    return this.#word(HITS);
  }

  set hits(count: number) {
    this.#setWord(HITS, count);
  }

  /** It is being asked anew. */
  get isRefreshing(): boolean {
    return this.#word(IS_REFRESHING) !== 0;
  }

  set isRefreshing(is: boolean) {
    this.#setWord(IS_REFRESHING, is ? 1 : 0);
  }

  get #nameBytes(): number {
    return this.#word(NAME_BYTES_AND_FLAGS) & LOW_BYTE;
  }

  /** Records, where their TTLs stand, and the server's error. */
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

  #time(time: number): number {
    return this.#columns.times[this.row * TIMES + time] as number;
  }

  #setTime(time: number, ms: number): void {
    this.#columns.times[this.row * TIMES + time] = ms;
  }
}
