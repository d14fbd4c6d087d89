/**
 * BriefEntries: what the kernel answers one namespace for some seconds: cached replies, and failures, when they are asked for
 * twice in a period of 8.6 s. The key of each entry has the period in it, so it is found for that long at most, and is never
 * changed. It is deleted when its period has been over for a second: then no program can still be reading it.
 */
import type { BriefKernelAnswer } from "../../base/model/kernel-answer.ts";
import type { Share } from "../../base/lib/share.ts";
import { monotonicNs } from "../monotonic.ts";
import type { AnswerKinds } from "./answer-kinds.ts";
import { AskedQuestions } from "./asked-questions.ts";
import {
  AUTHENTIC,
  AUTHORITATIVE,
  BRIEF_BODY_BYTES_MAX,
  BRIEF_ENTRY,
  BRIEF_KEY,
  BRIEF_KEY_BYTES,
  BRIEF_RECORDS_MAX,
  BRIEF_VALUE,
  BRIEF_VALUE_BYTES,
  KEY,
  LABELS_MAX,
  LOCAL,
  NAME_BYTES_MAX,
  PERIOD_NS,
  PHASE_FACTOR,
} from "./layout.ts";

const WITH_DNSSEC = 1;
const UNCHECKED = 2;
const NS_PER_MS = 1_000_000;
/** A time that does not come. */
const EVER = 2n ** 63n;
/** Longer than a period and a second. */
const ROUND_NS = 10_000_000_000;
/** A reply that ends sooner is not worth the call. */
const WORTH_MS = 500;
const KEYS_FIRST = 16;
/** Turns of two generations are not neighbours. */
const GENERATION_TURNS = 37;
/** In the number of an entry: which of the two rounds it is from, and its index there. */
const ODD_ROUND = 0x4000;
const INDEX_BITS = 0x3fff;

/** The entry that is being written. */
const newKey = Buffer.allocUnsafeSlow(BRIEF_KEY_BYTES);
const newValue = Buffer.allocUnsafeSlow(BRIEF_VALUE_BYTES);

/** Keys, one after the other, of what was written within the same 10 s. */
export class Round {
  keys = Buffer.alloc(0);
  count = 0;
  readonly number: number;
  readonly beganNs: number;
  /** The entries that are failures, and how many of their answers have been taken. */
  readonly failing: { readonly index: number; taken: number }[] = [];

  constructor(number: number, beganNs: number) {
    this.number = number;
    this.beganNs = beganNs;
  }

  keyOf(index: number): Buffer {
    return this.keys.subarray(index * BRIEF_KEY_BYTES, (index + 1) * BRIEF_KEY_BYTES);
  }

  add(key: Buffer): void {
    const at = this.count++ * BRIEF_KEY_BYTES;
    if (at === this.keys.length) {
      const longer = Buffer.allocUnsafeSlow(Math.max(KEYS_FIRST * BRIEF_KEY_BYTES, 2 * at));
      this.keys.copy(longer);
      this.keys = longer;
    }
    key.copy(this.keys, at);
  }
}

/** The kernel's table, with the entries of all namespaces. */
interface EntryTable {
  /** Returns whether the key is new, and there is room. */
  insert(key: Uint8Array, value: Uint8Array): boolean;
  read(key: Uint8Array, into: Uint8Array): boolean;
  delete(round: Round): void;
  /** Has all namespaces delete what has ended. */
  sweep(nowNs: number): void;
  /** These end now, and their namespace is closed. */
  retire(entries: BriefEntries, rounds: readonly Round[], share: Share): void;
}

interface BriefEntriesParts {
  /** The index of the namespace's space. */
  readonly space: number;
  readonly table: EntryTable;
  readonly kinds: AnswerKinds;
  readonly share: Share;
  /** Called before entries are deleted, which nobody can read afterwards. */
  readonly onEnding: () => void;
}

export class BriefEntries {
  readonly #parts: BriefEntriesParts;
  #asked: AskedQuestions | undefined;
  #current = new Round(0, monotonicNs());
  #previous: Round | undefined;

  constructor(parts: BriefEntriesParts) {
    this.#parts = parts;
  }

  /** The number of entries, with those that have ended. */
  get size(): number {
    return this.#current.count + (this.#previous?.count ?? 0);
  }

  remember(answer: BriefKernelAnswer, generation: number): boolean {
    const bytes = answer.to - answer.from;
    const records = answer.answers + answer.authorities + answer.additionals;
    if (bytes > BRIEF_BODY_BYTES_MAX || records > BRIEF_RECORDS_MAX || (answer.lasting?.forMs ?? WORTH_MS) < WORTH_MS)
      return false;
    if (answer.nameBytes > NAME_BYTES_MAX || answer.labels > LABELS_MAX || answer.nameBytes === 0) return false;
    const nowNs = monotonicNs();
    const phase = phaseOf(answer);
    const period = Math.floor((nowNs + 2 * phase) / PERIOD_NS) >>> 0;
    const bits = (answer.isDnssecOk ? WITH_DNSSEC : 0) | (answer.isUnchecked ? UNCHECKED : 0);
    const asked = (this.#asked ??= new AskedQuestions());
    if (!asked.isAskedAgain(mixed(phase ^ bits), period + generation * GENERATION_TURNS)) return false;
    this.sweep(nowNs);
    if (this.#current.count > INDEX_BITS || !this.#takeShare(nowNs)) return false;
    this.#encodeKey(answer, generation, period, bits);
    this.#encodeValue(answer, bytes, records, nowNs);
    if (!this.#parts.table.insert(newKey, newValue)) {
      this.#parts.share.give(1);
      return false;
    }
    asked.settle();
    if (answer.isFailure) this.#current.failing.push({ index: this.#current.count, taken: 0 });
    this.#current.add(newKey);
    return true;
  }

  /** Deletes what has been over for a second. */
  sweep(nowNs: number): void {
    if (nowNs - this.#current.beganNs < ROUND_NS) return;
    if (this.size > 0) this.#parts.onEnding();
    this.#delete(this.#previous);
    this.#previous = this.#current;
    this.#current = new Round(this.#previous.number + 1, nowNs);
    // Nothing was written for a whole round.
    if (nowNs - this.#previous.beganNs < 2 * ROUND_NS) return;
    this.#delete(this.#previous);
    this.#previous = undefined;
  }

  /** Reads an entry by its number; returns its key, or undefined if it is gone. */
  read(entry: number, into: Buffer): Buffer | undefined {
    const parity = (entry & ODD_ROUND) === 0 ? 0 : 1;
    const round = (this.#current.number & 1) === parity ? this.#current : this.#previous;
    const index = entry & INDEX_BITS;
    if (round === undefined || index >= round.count) return undefined;
    const key = round.keyOf(index);
    return this.#parts.table.read(key, into) ? key : undefined;
  }

  /** Passes the key of each failure that was the answer since the last call, and how often; its value is in `into`. */
  takeFailed(into: Buffer, visit: (key: Buffer, times: number) => void): void {
    for (const round of this.#previous === undefined ? [this.#current] : [this.#previous, this.#current]) {
      for (const failing of round.failing) {
        const key = round.keyOf(failing.index);
        if (!this.#parts.table.read(key, into)) continue;
        const answered = Number(into.readBigUInt64LE(BRIEF_VALUE.answered));
        if (answered > failing.taken) visit(key, answered - failing.taken);
        failing.taken = answered;
      }
    }
  }

  /** Its namespace is gone, or no longer served by the kernel. */
  close(): void {
    const { table, share } = this.#parts;
    table.retire(this, [this.#current, ...(this.#previous === undefined ? [] : [this.#previous])], share);
    this.#current = new Round(0, monotonicNs());
    this.#previous = undefined;
  }

  #takeShare(nowNs: number): boolean {
    const { share, table } = this.#parts;
    if (share.take(1)) return true;
    // Others may hold what has ended.
    table.sweep(nowNs);
    return share.take(1);
  }

  #delete(round: Round | undefined): void {
    if (round === undefined || round.count === 0) return;
    this.#parts.table.delete(round);
    this.#parts.share.give(round.count);
  }

  #encodeKey({ type, name, nameBytes }: BriefKernelAnswer, generation: number, period: number, bits: number): void {
    newKey.fill(0);
    newKey.writeUInt32LE(this.#parts.space, KEY.space);
    newKey.writeInt32LE(generation, KEY.generation);
    for (let at = 0; at < nameBytes; at++) newKey[KEY.name + at] = name[at] as number;
    newKey.writeUInt16BE(type, KEY.type);
    newKey.writeUInt32LE(period, BRIEF_KEY.period);
    newKey.writeUInt32LE(bits, BRIEF_KEY.bits);
  }

  #encodeValue(answer: BriefKernelAnswer, bytes: number, records: number, nowNs: number): void {
    const { type, rcode, source, message, from, ttlOffsets } = answer;
    newValue.fill(0);
    const { lasting } = answer;
    newValue.writeBigUInt64LE(
      lasting === undefined ? EVER : ns(nowNs - lasting.sinceMs * NS_PER_MS),
      BRIEF_VALUE.since,
    );
    newValue.writeBigUInt64LE(lasting === undefined ? EVER : ns(nowNs + lasting.forMs * NS_PER_MS), BRIEF_VALUE.until);
    newValue[BRIEF_VALUE.answers] = answer.answers;
    newValue[BRIEF_VALUE.authorities] = answer.authorities;
    newValue[BRIEF_VALUE.additionals] = answer.additionals;
    newValue[BRIEF_VALUE.bytes] = bytes;
    newValue[BRIEF_VALUE.codes] =
      rcode |
      (answer.isAuthoritative ? AUTHORITATIVE : 0) |
      (answer.isAuthentic ? AUTHENTIC : 0) |
      (source === "cache" ? 0 : LOCAL);
    newValue[BRIEF_VALUE.kind] = this.#parts.kinds.numberOf({ type, rcode, source });
    const { number, count } = this.#current;
    newValue.writeUInt16LE(BRIEF_ENTRY | ((number & 1) === 1 ? ODD_ROUND : 0) | count, BRIEF_VALUE.entry);
    for (let at = 0; at < bytes; at++) newValue[BRIEF_VALUE.body + at] = message[from + at] as number;
    for (let index = 0; lasting !== undefined && index < records; index++) {
      const at = ttlOffsets[index] as number;
      newValue.writeUInt32LE(newValue.readUInt32BE(BRIEF_VALUE.body + at), BRIEF_VALUE.ttls + index * 4);
      newValue[BRIEF_VALUE.ttlsAt + index] = at;
    }
  }
}

function ns(time: number): bigint {
  return BigInt(Math.round(time));
}

/** The sum of the key's name and type as words of 32 bits, as the program calculates it. */
function phaseOf({ type, name, nameBytes }: BriefKernelAnswer): number {
  let sum = ((type >>> 8) << 16) + ((type & 0xff) << 24);
  for (let at = 0; at < nameBytes; at++) sum = (sum + ((name[at] as number) << ((at & 3) * 8))) | 0;
  return Math.imul(sum, PHASE_FACTOR) >>> 0;
}

/** A number whose lower bits depend on all of these. */
function mixed(number: number): number {
  const product = Math.imul(number, PHASE_FACTOR);
  return (product ^ (product >>> 15)) >>> 0;
}
