/**
 * FailurePart: failing names of one container in one buffer of fixed size, the oldest entry first. A new entry is added
 * at the end; to make room, the entry that failed least recently is removed and the rest moves up. An entry has the
 * length of its name. The buffer begins with a bitmap of the names' hashes, so that most names that have no entry are
 * recognized without a search.
 */
import { presentation, sameBytes } from "../../base/dns/name.ts";
import type { FailureRecord } from "../../base/model/failure-record.ts";
import type { FoldedName } from "./folded-name.ts";

/** 256 bits. */
const BITMAP_BYTES = 32;
/** Three times, six words; then the name. */
const FIXED_BYTES = 48;
/** Offsets in doubles. */
const FIRST = 0;
const LAST = 1;
const SUCCESS = 2;
/** Offsets in words. */
const COUNT = 6;
const STEPS = 7;
const HASH = 8;
/** Type, response code and flags. */
const KIND = 9;
/** Failures of the minute of the last failure, and of the minute before. */
const MINUTES = 10;
const LENGTH = 11;

const STEP = 1;
const NAMELESS = 2;
const MINUTE_MS = 60_000;
const PER_MINUTE_MAX = 0xffff;
const COUNT_MAX = 0xffff_ffff;

export class FailurePart {
  readonly #isNear: boolean;
  readonly #bytes: Uint8Array;
  readonly #words: Uint32Array;
  readonly #doubles: Float64Array;
  #end = BITMAP_BYTES;
  #count = 0;
  /** A bit for the first label of each name. */
  #firstBits = 0;

  constructor(bytes: number, isNear: boolean) {
    this.#isNear = isNear;
    this.#bytes = new Uint8Array(bytes);
    this.#words = new Uint32Array(this.#bytes.buffer);
    this.#doubles = new Float64Array(this.#bytes.buffer);
  }

  get count(): number {
    return this.#count;
  }

  /** Whether a name may have the same first label as an entry. */
  mayHaveFirst({ firstBit }: FoldedName): boolean {
    return (this.#firstBits & firstBit) !== 0;
  }

  /** Offset of the entry of a name with this type and code; -1 without one. */
  find(name: FoldedName, type: number, rcode: number): number {
    const { hash, length, bytes } = name;
    if (((this.#words[(hash & 0xff) >>> 5] as number) & (1 << (hash & 31))) === 0) return -1;
    const kind = kindOf(type, rcode);
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at)) {
      const word = at >> 2;
      if (this.#words[word + HASH] !== hash || ((this.#words[word + KIND] as number) & ~0xff) >>> 0 !== kind) continue;
      if (this.#words[word + LENGTH] !== length) continue;
      if (sameBytes(this.#bytes, at + FIXED_BYTES, bytes, 0, length)) return at;
    }
    return -1;
  }

  /**
   * Counts so many more failures of an entry. `isRepeated`: the kernel has given the same answer again, and it is a step of a
   * lookup if the last one was, because nobody has seen what the lookup led to.
   */
  repeat(at: number, nowMs: number, times: number, isRepeated: boolean): void {
    const words = this.#words;
    const word = at >> 2;
    const last = this.#doubles[(at >> 3) + LAST] as number;
    words[word + COUNT] = Math.min(COUNT_MAX, (words[word + COUNT] as number) + times);
    if (!isRepeated) words[word + KIND] = (words[word + KIND] as number) & ~STEP;
    else if (((words[word + KIND] as number) & STEP) !== 0)
      words[word + STEPS] = Math.min(COUNT_MAX, (words[word + STEPS] as number) + times);
    const [current, before] = shifted(words[word + MINUTES] as number, last, nowMs);
    words[word + MINUTES] = (before << 16) | Math.min(PER_MINUTE_MAX, current + times);
    this.#doubles[(at >> 3) + LAST] = nowMs;
  }

  /** Whether an entry for this name fits without an eviction. */
  hasRoomFor({ length }: FoldedName): boolean {
    return this.#end + sizeOf(length) <= this.#bytes.length;
  }

  /** Adds an entry with so many failures. */
  add(name: FoldedName, type: number, rcode: number, hasName: boolean, nowMs: number, times: number): void {
    while (!this.hasRoomFor(name)) this.#evict();
    const at = this.#end;
    const word = at >> 2;
    const { length, hash } = name;
    this.#words.fill(0, word, word + FIXED_BYTES / 4);
    this.#doubles[(at >> 3) + FIRST] = this.#doubles[(at >> 3) + LAST] = nowMs;
    this.#words[word + COUNT] = times;
    this.#words[word + MINUTES] = Math.min(PER_MINUTE_MAX, times);
    this.#words[word + HASH] = hash;
    this.#words[word + KIND] = kindOf(type, rcode) | (hasName ? 0 : NAMELESS);
    this.#words[word + LENGTH] = length;
    for (let i = 0; i < length; i++) this.#bytes[at + FIXED_BYTES + i] = name.bytes[i] as number;
    this.#end += sizeOf(length);
    this.#count++;
    this.#mark(hash);
    this.#firstBits |= name.firstBit;
  }

  /**
   * A name resolves: that ends the failures of its entries, and the latest failure of a name with the same first label
   * may have been a step of the same lookup, through a search list.
   */
  succeed(name: FoldedName, type: number, hasAnswers: boolean, nowMs: number, stepMs: number): void {
    const { bytes, length, firstLength } = name;
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at)) {
      const word = at >> 2;
      const kind = this.#words[word + KIND] as number;
      const nameAt = at + FIXED_BYTES;
      if (kind >>> 16 !== type || this.#bytes[nameAt] !== bytes[0]) continue;
      if ((kind & NAMELESS) !== 0 || !sameBytes(this.#bytes, nameAt, bytes, 0, firstLength)) continue;
      // An empty answer is what fails here.
      if (((kind >>> 8) & 0xff) === 0 && !hasAnswers) continue;
      const isSame = this.#words[word + LENGTH] === length && sameBytes(this.#bytes, nameAt, bytes, 0, length);
      if (isSame) this.#doubles[(at >> 3) + SUCCESS] = nowMs;
      else if ((kind & STEP) === 0 && nowMs - (this.#doubles[(at >> 3) + LAST] as number) <= stepMs) {
        this.#words[word + KIND] = kind | STEP;
        this.#words[word + STEPS] = (this.#words[word + STEPS] as number) + 1;
      }
    }
  }

  *records(nowMs: number): Generator<FailureRecord> {
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at)) yield this.#read(at, nowMs);
  }

  #read(at: number, nowMs: number): FailureRecord {
    const words = this.#words.subarray(at >> 2, (at + FIXED_BYTES) >> 2);
    const [first = 0, last = 0, success = 0] = this.#doubles.subarray(at >> 3, (at >> 3) + 3);
    const [kind = 0, minutes = 0, length = 0] = words.subarray(KIND);
    const [current, before] = shifted(minutes, last, nowMs);
    return {
      name: (kind & NAMELESS) === 0 ? presentation(this.#bytes, at + FIXED_BYTES, at + FIXED_BYTES + length) : null,
      type: kind >>> 16,
      rcode: (kind >>> 8) & 0xff,
      count: words[COUNT] ?? 0,
      steps: words[STEPS] ?? 0,
      isStepLast: (kind & STEP) !== 0,
      // The rest of the minute before, as if its failures were spread evenly.
      perMinute: Math.round(current + before * (1 - (nowMs % MINUTE_MS) / MINUTE_MS)),
      firstMs: first,
      lastMs: last,
      successMs: success === 0 ? undefined : success,
      isNear: this.#isNear,
    };
  }

  /** Removes the entry that failed least recently. */
  #evict(): void {
    let oldest = BITMAP_BYTES;
    let oldestMs = Infinity;
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at)) {
      const last = this.#doubles[(at >> 3) + LAST] as number;
      if (last < oldestMs) [oldest, oldestMs] = [at, last];
    }
    const size = this.#sizeAt(oldest);
    this.#bytes.copyWithin(oldest, oldest + size, this.#end);
    this.#end -= size;
    this.#count--;
    this.#words.fill(0, 0, BITMAP_BYTES / 4);
    // Bits of first labels are never cleared: one too many costs a search.
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at))
      this.#mark(this.#words[(at >> 2) + HASH] as number);
  }

  #mark(hash: number): void {
    const word = (hash & 0xff) >>> 5;
    this.#words[word] = (this.#words[word] as number) | (1 << (hash & 31));
  }

  #sizeAt(at: number): number {
    return sizeOf(this.#words[(at >> 2) + LENGTH] as number);
  }
}

function sizeOf(length: number): number {
  return FIXED_BYTES + ((length + 7) & ~7);
}

/** A code of more than eight bits counts as the largest. */
function kindOf(type: number, rcode: number): number {
  return ((type << 16) | (Math.min(rcode, 0xff) << 8)) >>> 0;
}

/** The failures of the current minute and of the one before, after time has passed since the last failure. */
function shifted(minutes: number, lastMs: number, nowMs: number): [current: number, before: number] {
  const passed = Math.floor(nowMs / MINUTE_MS) - Math.floor(lastMs / MINUTE_MS);
  const current = minutes & PER_MINUTE_MAX;
  if (passed === 0) return [current, minutes >>> 16];
  return [0, passed === 1 ? current : 0];
}
