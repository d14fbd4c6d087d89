/**
 * BriefEntries: what the kernel answers one namespace for some seconds: cached replies, and failures, when they are queried twice in a
 * period of 8.6 s. The key of each entry contains the period, so it is found for that long at most, and is never changed. It is deleted a
 * second after its period or its generation has ended: then no program can still be reading it.
 */
import type { Share } from "../../../base/lib/share.ts";
import { RECORD_FIXED_BYTES, TTL_AT } from "../../../base/dns/record.ts";
import type { AnswerKinds } from "./answer-table.ts";
import { BriefBatch } from "./brief-batch.ts";
import type { KernelQuestion, BriefKernelAnswer } from "./kernel-answer.ts";
import { writeQuestion } from "./key-list.ts";
import {
  AUTHENTIC,
  AUTHORITATIVE,
  BRIEF_BODY_BYTES_MAX,
  BRIEF_ENTRY,
  BRIEF_KEY,
  BRIEF_RECORDS_MAX,
  BRIEF_VALUE,
  LABELS_MAX,
  LOCAL,
  NAME_BYTES_MAX,
  PERIOD_NS,
  PHASE_BYTES,
  PHASE_FACTOR,
  BATCHES,
  BATCH_INDEX_MAX,
  BATCH_SHIFT,
} from "./layout.ts";

const WITH_DNSSEC = 1;
const UNCHECKED = 2;
const NS_PER_MS = 1_000_000;
/** A time that is never reached. */
const EVER = 2n ** 63n;
const BATCH_NS = 5_000_000_000;
/** How long after its end an entry is deleted. */
const GRACE_NS = 1_000_000_000;
/** A reply that expires sooner is not worth the system call. */
const WORTH_MS = 500;
/** Keeps the periods of two generations apart. */
const GENERATION_PERIODS = 37;

/** Writes an entry. */
interface EntryWriter {
  readonly key: Buffer;
  readonly value: Buffer;
  /** Returns whether the key is new, and there is room. */
  insert(): boolean;
}

/** The kernel's table, with the entries of all namespaces. */
interface EntryTable {
  readonly writer: EntryWriter;
  read(key: Uint8Array, into: Uint8Array): boolean;
  delete(batch: BriefBatch): void;
  /** Has all namespaces delete their ended entries. */
  sweep(nowNs: number): void;
  /** Ends these entries now, because their namespace is closed. */
  retire(entries: BriefEntries, batches: readonly BriefBatch[], share: Share): void;
}

export interface BriefEntriesParts {
  /** The index of the namespace's space. */
  readonly space: number;
  readonly table: EntryTable;
  readonly kinds: AnswerKinds;
  readonly share: Share;
  /** The current generation of the space. */
  readonly generation: () => number;
  /** Called before entries are deleted: after that nobody can read them. */
  readonly onEnding: () => void;
}

export class BriefEntries {
  readonly #parts: BriefEntriesParts;
  #asked: RecentQuestions | undefined;
  /** The oldest first; new entries are written into the last one. */
  #batches: BriefBatch[] = [];
  #batchesBegun = 0;

  constructor(parts: BriefEntriesParts) {
    this.#parts = parts;
  }

  /** The number of entries, including those that have ended. */
  get size(): number {
    return this.#batches.reduce((sum, { keys }) => sum + keys.count, 0);
  }

  /** Notes the question. Returns whether it was asked before in its period, so that its answer is worth an entry. */
  isAskedAgain(question: KernelQuestion): boolean {
    const { nameBytes, type } = question;
    if (nameBytes > NAME_BYTES_MAX || nameBytes === 0) return false;
    const phase = phaseOf(question);
    const number = mixed(mixed(sumOf(question, nameBytes) + type) ^ bitsOf(question));
    const period = periodAt(phase, monotonicNs()) + this.#parts.generation() * GENERATION_PERIODS;
    return (this.#asked ??= new RecentQuestions()).isAskedAgain(number, period);
  }

  /** Adds an entry for the last question. */
  remember(answer: BriefKernelAnswer): boolean {
    const bytes = answer.to - answer.from;
    const records = answer.answers + answer.authorities + answer.additionals;
    if (bytes > BRIEF_BODY_BYTES_MAX || records > BRIEF_RECORDS_MAX || answer.labels > LABELS_MAX) return false;
    if ((answer.lasting?.forMs ?? WORTH_MS) < WORTH_MS) return false;
    const nowNs = monotonicNs();
    this.sweep(nowNs);
    const batch = this.#batchAt(nowNs);
    if (batch === undefined || batch.isFull || !this.#takeShare(nowNs)) {
      // The question is not tried again in this period.
      this.#asked?.settle();
      return false;
    }
    const { writer } = this.#parts.table;
    const { key, value } = writer;
    writeQuestion(key, this.#parts.space, batch.generation, answer);
    key.writeUInt32LE(periodAt(phaseOf(answer), nowNs), BRIEF_KEY.period);
    key.writeUInt32LE(bitsOf(answer), BRIEF_KEY.bits);
    this.#encodeValue(answer, bytes, records, nowNs);
    value.writeUInt16LE(BRIEF_ENTRY | ((batch.number % BATCHES) << BATCH_SHIFT) | batch.keys.count, BRIEF_VALUE.entry);
    if (!writer.insert()) {
      this.#parts.share.give(1);
      return false;
    }
    this.#asked?.settle();
    batch.add(key, answer.isFailure);
    return true;
  }

  /** Deletes the entries that no program can be reading any more. */
  sweep(nowNs: number): void {
    const last = this.#batches.at(-1);
    if (last === undefined) return;
    const generation = this.#parts.generation();
    for (const batch of this.#batches) {
      const isOver = batch.generation !== generation;
      if (batch === last && !isOver && nowNs - batch.beganNs < BATCH_NS) continue;
      const endNs = nowNs + GRACE_NS + (isOver ? 0 : PERIOD_NS);
      batch.endNs = Math.min(batch.endNs ?? endNs, endNs);
    }
    const isEnded = ({ endNs }: BriefBatch): boolean => endNs !== undefined && endNs <= nowNs;
    const ended = this.#batches.filter(isEnded);
    if (ended.length === 0) return;
    this.#parts.onEnding();
    for (const batch of ended) {
      this.#parts.table.delete(batch);
      this.#parts.share.give(batch.keys.count);
    }
    this.#batches = this.#batches.filter((batch) => !ended.includes(batch));
  }

  /** Reads an entry by its number; returns its key, or undefined if it is gone. */
  read(entry: number, into: Buffer): Buffer | undefined {
    const [number, index] = [(entry & ~BRIEF_ENTRY) >> BATCH_SHIFT, entry & BATCH_INDEX_MAX];
    const batch = this.#batches.find((each) => each.number % BATCHES === number);
    if (batch === undefined || index >= batch.keys.count) return undefined;
    const key = batch.keys.at(index);
    return this.#parts.table.read(key, into) ? key : undefined;
  }

  /** Passes the key of each failure that was the answer since the last call, and how often; `into` then has its value. */
  takeFailed(into: Buffer, visit: (key: Buffer, times: number) => void): void {
    for (const batch of this.#batches) {
      for (const entry of batch.failing) {
        const key = batch.keys.at(entry.index);
        if (!this.#parts.table.read(key, into)) continue;
        const answered = Number(into.readBigUInt64LE(BRIEF_VALUE.answered));
        if (answered > entry.taken) visit(key, answered - entry.taken);
        entry.taken = answered;
      }
    }
  }

  /** The namespace is gone, or the kernel no longer answers for it. */
  close(): void {
    const { table, share } = this.#parts;
    table.retire(this, this.#batches, share);
    this.#batches = [];
  }

  /** The batch into which entries are written now; undefined if there are too many batches. */
  #batchAt(nowNs: number): BriefBatch | undefined {
    const last = this.#batches.at(-1);
    if (last !== undefined && last.endNs === undefined) return last;
    if (this.#batches.length === BATCHES) return undefined;
    const batch = new BriefBatch(this.#batchesBegun++, this.#parts.generation(), nowNs);
    this.#batches.push(batch);
    return batch;
  }

  #takeShare(nowNs: number): boolean {
    const { share, table } = this.#parts;
    if (share.take(1)) return true;
    // Other namespaces may hold entries that have ended.
    table.sweep(nowNs);
    return share.take(1);
  }

  #encodeValue(answer: BriefKernelAnswer, bytes: number, records: number, nowNs: number): void {
    const { value } = this.#parts.table.writer;
    const { type, rcode, source, message, from, ttlOffsets, rotated, lasting } = answer;
    value.fill(0);
    const [since, until] =
      lasting === undefined
        ? [EVER, EVER]
        : [ns(nowNs - lasting.sinceMs * NS_PER_MS), ns(nowNs + lasting.forMs * NS_PER_MS)];
    value.writeBigUInt64LE(since, BRIEF_VALUE.since);
    value.writeBigUInt64LE(until, BRIEF_VALUE.until);
    value[BRIEF_VALUE.answers] = answer.answers;
    value[BRIEF_VALUE.authorities] = answer.authorities;
    value[BRIEF_VALUE.additionals] = answer.additionals;
    value[BRIEF_VALUE.bytes] = bytes;
    value[BRIEF_VALUE.codes] =
      rcode |
      (answer.isAuthoritative ? AUTHORITATIVE : 0) |
      (answer.isAuthentic ? AUTHENTIC : 0) |
      (source === "cache" ? 0 : LOCAL);
    value[BRIEF_VALUE.kind] = this.#parts.kinds.numberOf({ type, rcode, source });
    for (let at = 0; at < bytes; at++) value[BRIEF_VALUE.body + at] = message[from + at] as number;
    for (let index = 0; lasting !== undefined && index < records; index++) {
      const at = ttlOffsets[index] as number;
      value.writeUInt32LE(value.readUInt32BE(BRIEF_VALUE.body + at), BRIEF_VALUE.ttls + index * 4);
      value[BRIEF_VALUE.ttlsAt + index] = at;
    }
    value[BRIEF_VALUE.rotated] = rotated;
    for (let index = 0; index < 2 * rotated; index++) {
      const at = ttlOffsets[records - rotated + (index % rotated)] as number;
      value[BRIEF_VALUE.addressesAt + index] = at + RECORD_FIXED_BYTES - TTL_AT;
    }
  }
}

/**
 * When the periods of a name begin: it depends on the first bytes of the first label, so that the names of one lookup through a search list
 * end together. The program calculates it in the same way.
 */
function phaseOf(question: KernelQuestion): number {
  const labelBytes = (question.name[0] as number) + 1;
  return Math.imul(sumOf(question, Math.min(labelBytes, PHASE_BYTES)), PHASE_FACTOR) >>> 0;
}

/** The sum of the first bytes of the name, as words of 32 bits. */
function sumOf({ name }: KernelQuestion, bytes: number): number {
  let sum = 0;
  for (let at = 0; at < bytes; at++) sum = (sum + ((name[at] as number) << ((at & 3) * 8))) | 0;
  return sum;
}

function periodAt(phase: number, nowNs: number): number {
  return Math.floor((nowNs + 2 * phase) / PERIOD_NS) >>> 0;
}

function bitsOf({ isDnssecOk, isUnchecked }: KernelQuestion): number {
  return (isDnssecOk ? WITH_DNSSEC : 0) | (isUnchecked ? UNCHECKED : 0);
}

/** A number whose lower bits depend on all of these. */
function mixed(number: number): number {
  const product = Math.imul(number, PHASE_FACTOR);
  return (product ^ (product >>> 15)) >>> 0;
}

function ns(time: number): bigint {
  return BigInt(Math.round(time));
}

const READINGS = 10;
const startNs = readStart();

/** Exact to a few nanoseconds in the first hundred days after the machine has booted, and to a microsecond for ever. */
export function monotonicNs(): number {
  return startNs + performance.now() * NS_PER_MS;
}

/** Of several readings of both clocks, uses the one that took least time: a busy machine may run another program between the two. */
function readStart(): number {
  let bestNs = 0n;
  let leastNs: bigint | undefined;
  for (let reading = 0; reading < READINGS; reading++) {
    const beforeNs = process.hrtime.bigint();
    const sinceMs = performance.now();
    const tookNs = process.hrtime.bigint() - beforeNs;
    if (leastNs !== undefined && tookNs >= leastNs) continue;
    leastNs = tookNs;
    bestNs = beforeNs - BigInt(Math.round(sinceMs * NS_PER_MS));
  }
  return Number(bestNs);
}

/**
 * RecentQuestions: which questions a namespace has asked in the current period, by a number for each. So an answer is put into the
 * kernel's table when it is asked for again, and a flood of new names writes nothing. Two questions may have the same number, or
 * displace each other: that costs them a query to the process, or an entry that is not needed.
 */
const FIRST = 256;
const MOST = 4_096;
/** The number of slots in which a question may be. */
const WAYS = 4;
/**
 * The bits of a slot: the upper ones of the question's number, the period, and whether the kernel has the answer. The lower bits of the
 * number select the slots.
 */
const QUESTION_BITS = 0xffff_fc00;
const PERIOD_BITS = 0x1ff << 1;
const SETTLED = 1;

export class RecentQuestions {
  #slots = new Uint32Array(FIRST);
  /** How many questions have displaced others of the same period since the last growth. */
  #crowded = 0;
  /** The slot of the last question. */
  #at = 0;

  /** Notes the question; returns whether it was asked before in this period, and the kernel does not have its answer. */
  isAskedAgain(question: number, period: number): boolean {
    const slots = this.#slots;
    const present = (period << 1) & PERIOD_BITS;
    const number = ((question & QUESTION_BITS) | present) >>> 0;
    const first = question & (slots.length - WAYS);
    let free = -1;
    for (let at = first; at < first + WAYS; at++) {
      const known = slots[at] as number;
      if ((known & ~SETTLED) >>> 0 === number) {
        this.#at = at;
        return (known & SETTLED) === 0;
      }
      if (known === 0 || isOld(known, present)) free = at;
    }
    const isCrowded = free === -1;
    slots[isCrowded ? first + (this.#crowded & (WAYS - 1)) : free] = number;
    if (isCrowded) this.#crowd();
    return false;
  }

  /** Notes that the kernel has the answer to the last question. */
  settle(): void {
    this.#slots[this.#at] = (this.#slots[this.#at] as number) | SETTLED;
  }

  #crowd(): void {
    const { length } = this.#slots;
    if (++this.#crowded < length / WAYS || length === MOST) return;
    this.#crowded = 0;
    this.#slots = new Uint32Array(2 * length);
  }
}

/** Questions of one time may be in two periods, because the periods of each name begin at another time. */
function isOld(known: number, present: number): boolean {
  const behind = (present - (known & PERIOD_BITS)) & PERIOD_BITS;
  return behind !== 0 && behind !== 1 << 1 && behind !== PERIOD_BITS;
}
