/**
 * QueryHistory: the recent queries of one container and their results. It is written on the query path, so writing
 * copies bytes and allocates nothing; readers pay for building strings and objects.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { presentation, POINTER, POINTER_BYTES } from "../../base/dns/name.ts";
import { addressText } from "../../base/model/address.ts";
import { LOCAL_SOURCES } from "../../base/model/local-source.ts";
import { type QueryRecord, QUERY_RESULT, QUERY_RESULTS } from "../../base/model/query-record.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import { LIMITS } from "../../base/limits.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import type { RecordingPolicy } from "../record/tables-by-container.ts";
import { u16 } from "../../base/dns/bytes.ts";
import { DATA_LENGTH_AT, QUESTION_FIXED_BYTES, RECORD_FIXED_BYTES } from "../../base/dns/record.ts";
import { TYPE } from "../../base/dns/record-type.ts";

/** Arrival (8 bytes), duration, TTL, type and number of answers, and one word of single bytes; then name and addresses. */
const FIXED_BYTES = 24;

/** The word of a record whose upper half is its type. */
const KINDS_WORD = 4;

/** The word of a record whose lowest byte is the length of its name, with the number of its addresses among the flags. */
const LENGTHS_WORD = 5;

/** The two bits of that word with the number of addresses. */
const ADDRESSES_SHIFT = 21;
const ADDRESSES_MASK = 3;

/** Offset of the name in a record. */
const NAME_AT = FIXED_BYTES;

const NO_TTL = 0xffff_ffff;
/** Flag bits beside the result. */
const BY_STREAM = 0x08;
const NAMELESS = 0x10;
/** Number of servers, or rules, that fit into a record, 0 meaning none; one more server clears the history. */
const SERVERS_MAX = 255;
/** Gaps that are known one by one; of more, the oldest are one. */
const GAPS_MAX = 16;
const UNNAMED_RULE = "a rule of a lease or a policy";
const DISABLED: RecordingPolicy = { isEnabled: false, hasNames: false };

/** Queries that the kernel answered; it records the last ones when the history is read. */
export interface RepeatedQueries {
  /** Adds them to the history. */
  read(): void;
  /** Recording has been turned on or off. */
  switched(): void;
}

export class QueryHistory {
  /** The container, and its name once it has ended and the registry no longer knows it. */
  readonly containerId: string;
  containerName: string | undefined;
  readonly #policy: RecordingPolicy;
  #ring: Ring | undefined;
  /** Number of the first record. Starting at the current time, numbers increase across restarts of a container. */
  readonly firstSeq: number;
  #nextSeq: number;
  #servers: string[] | undefined;
  /** The rules of leases and policies that had a say in an answer. */
  #rules: string[] = [];
  /** The server of the last reply and its index: usually also that of the next reply. */
  #lastServer: Server | undefined;
  #lastIndex = 0;
  /** Arrival time of the queries that are being answered, on the clock of `performance.now`. */
  #nowMs = 0;
  repeated: RepeatedQueries | undefined;
  /** Queries without a record, before the one of that number. */
  readonly #gaps: { readonly before: number; readonly count: number }[] = [];

  /** `lastSeq`: of the container's history before this one. The clock may have been set back since. */
  constructor(containerId = "", policy: RecordingPolicy = DISABLED, lastSeq = 0) {
    this.containerId = containerId;
    this.#policy = policy;
    this.firstSeq = this.#nextSeq = Math.max(lastSeq + 1, Date.now() * 1000);
  }

  get isEnabled(): boolean {
    return this.#policy.isEnabled;
  }

  /** Sets the time for a batch of queries; the clock is read once. */
  tick(nowMs?: number): void {
    if (this.#policy.isEnabled) this.#nowMs = nowMs ?? performance.now();
  }

  /** Notes `count` queries without a record, before the query with number `before`. */
  skip(before: number, count: number): void {
    this.#gaps.push({ before, count });
    const [oldest, second] = this.#gaps;
    if (this.#gaps.length <= GAPS_MAX || oldest === undefined || second === undefined) return;
    this.#gaps.splice(0, 2, { before: second.before, count: oldest.count + second.count });
  }

  /** The number of queries after number `seq` without a record. */
  skippedSince(seq: number): number {
    return this.#gaps.reduce((sum, { before, count }) => sum + (before > seq ? count : 0), 0);
  }

  /** Records the outcome of a query. */
  note(outcome: Outcome): void {
    if (!this.#policy.isEnabled) return;
    const { server, answers } = outcome;
    // A local answer has no server, so the record has the answer's source in that field.
    const isLocal = outcome.result === QUERY_RESULT.local;
    const index =
      outcome.rule !== undefined
        ? this.#indexOfRule(outcome.rule)
        : isLocal
          ? outcome.source
          : server === undefined
            ? 0
            : this.#indexOf(server);
    const at = this.#begin(outcome, index);
    const ring = this.#ring as Ring;
    const word = at >> 2;
    const isDelivered = outcome.stage === STAGE.completed;
    ring.doubles[at >> 3] = isDelivered ? outcome.arrivedMs : this.#nowMs;
    ring.words[word + 2] = isDelivered ? Math.min(0xffff_ffff, outcome.tookMs * 1000) : 0;
    ring.words[word + 3] = answers === 0 ? NO_TTL : (outcome.ttl ?? NO_TTL);
    ring.words[word + 4] = outcome.nameEnd === 0 ? 0 : (outcome.type << 16) | answers;
  }

  /** Removes all records. Numbering continues, so that readers notice the gap. */
  clear(): void {
    this.#ring = undefined;
    this.#servers = undefined;
    this.#rules = [];
    // While recording is off, the clock is not read.
    this.#nowMs = 0;
  }

  get isEmpty(): boolean {
    return this.#ring === undefined || this.#ring.count === 0;
  }

  /** The number of the last query; one less than the first number if there is none. */
  get lastSeq(): number {
    return this.#nextSeq - 1;
  }

  /** The number of the oldest query in the history, or of the next one if there is none. */
  get oldestSeq(): number {
    return this.#nextSeq - (this.#ring?.count ?? 0);
  }

  /** Queries after number `seq`, oldest first; at most the last `most`. */
  *since(seq: number, most = Number.POSITIVE_INFINITY): Generator<QueryRecord> {
    const ring = this.#ring;
    if (ring === undefined) return;
    const first = Math.max(seq + 1, this.oldestSeq, this.#nextSeq - most);
    let at = ring.oldest;
    for (let number = this.oldestSeq; number < this.#nextSeq; number++, at = ring.after(at)) {
      if (number >= first) yield this.#read(ring, at, number);
    }
  }

  #read(ring: Ring, at: number, seq: number): QueryRecord {
    const word = at >> 2;
    const [took = 0, ttl = 0, kinds = 0, rest = 0] = ring.words.subarray(word + 2, word + 6);
    const flags = (rest >>> 16) & 0xff;
    const nameAt = at + NAME_AT;
    const result = QUERY_RESULTS[flags & 7] ?? "local";
    const from = (rest >>> 8) & 0xff;
    const isRuled = result === "ruled" || result === "denied";
    return {
      seq,
      atMs: ring.doubles[at >> 3] ?? 0,
      name: (flags & NAMELESS) === 0 ? presentation(ring.bytes, nameAt, nameAt + (rest & 0xff)) : null,
      type: kinds >>> 16,
      rcode: rest >>> 24,
      answers: kinds & 0xffff,
      addresses: addressesOf(ring, at, nameAt + (rest & 0xff), kinds >>> 16),
      ttl: ttl === NO_TTL ? null : ttl,
      isStream: (flags & BY_STREAM) !== 0,
      result,
      source: result === "local" ? (LOCAL_SOURCES[from]?.key ?? null) : null,
      upstream: result === "local" || isRuled ? null : (this.#servers?.[from - 1] ?? null),
      rule: isRuled ? (this.#rules[from - 1] ?? UNNAMED_RULE) : null,
      tookMs: took / 1000,
    };
  }

  /** Starts a record and writes its name and addresses; returns its offset. */
  #begin(outcome: Outcome, server: number): number {
    const { question, at: offset, nameEnd, isStream, rcode } = outcome;
    const isByLease = outcome.rule !== undefined && outcome.result !== QUERY_RESULT.denied;
    const result = isByLease ? QUERY_RESULT.ruled : outcome.result;
    const ring = (this.#ring ??= new Ring());
    const isNamed = nameEnd !== 0 && this.#policy.hasNames;
    const from = offset + HEADER_BYTES;
    // The root label does not count.
    const length = isNamed ? nameEnd - from - 1 : 0;
    // Addresses are as private as names.
    const addresses = isNamed && rcode === 0 ? findAddresses(outcome) : 0;
    const size = addresses === 0 ? 0 : addressSize(outcome.type);
    const at = ring.reserve(length + addresses * size);
    const { bytes } = ring;
    let to = at + NAME_AT;
    for (let i = 0; i < length; i++) bytes[to++] = question[from + i] as number;
    for (let index = 0; index < addresses; index++) {
      const start = addressAt[index] as number;
      for (let i = 0; i < size; i++) bytes[to++] = outcome.reply[start + i] as number;
    }
    const flags = result | (isStream ? BY_STREAM : 0) | (isNamed ? 0 : NAMELESS);
    ring.words[(at >> 2) + 5] = (rcode << 24) | (addresses << ADDRESSES_SHIFT) | (flags << 16) | (server << 8) | length;
    this.#nextSeq++;
    return at;
  }

  #indexOf(server: Server): number {
    if (server !== this.#lastServer || this.#servers === undefined) {
      this.#lastIndex = this.#indexOfText(serverText(server));
      this.#lastServer = server;
    }
    return this.#lastIndex;
  }

  /** 0 for a rule beyond those that fit. */
  #indexOfRule(rule: string): number {
    const known = this.#rules.indexOf(rule);
    if (known !== -1) return known + 1;
    return this.#rules.length === SERVERS_MAX ? 0 : this.#rules.push(rule);
  }

  #indexOfText(server: string): number {
    this.#servers ??= [];
    const known = this.#servers.indexOf(server);
    if (known !== -1) return known + 1;
    // After so many changes of servers, the queries to the earlier ones can be dropped.
    if (this.#servers.length === SERVERS_MAX) {
      this.clear();
      this.#servers = [];
    }
    return this.#servers.push(server);
  }
}

function addressesOf(ring: Ring, at: number, from: number, type: number): string[] {
  const size = addressSize(type);
  return Array.from({ length: ring.addressesAt(at) }, (_, index) => {
    const start = from + index * size;
    return addressText(ring.bytes.subarray(start, start + size));
  });
}

/**
 * The last records of one query history, in one buffer of fixed size. A record has the length of its name and
 * addresses and is contiguous; if it does not fit before the end of the buffer, it starts at the beginning, over the oldest records.
 *
 *   not wrapped:  |....[oldest  ...  newest]........|        wrapped:  |[  newest].....[oldest  ...  ]..|
 *                      tail                 head                                 head   tail         wrapEnd
 */
class Ring {
  readonly bytes = new Uint8Array(LIMITS.historyBytes);
  readonly words = new Uint32Array(this.bytes.buffer);
  /** For times: a record begins at a multiple of eight. */
  readonly doubles = new Float64Array(this.bytes.buffer);
  /** Number of records. */
  count = 0;
  #head = 0;
  #tail = 0;
  #wrapEnd = 0;
  #isWrapped = false;

  /** Makes room for a record with a name and addresses of this length by dropping the oldest; returns its offset. */
  reserve(length: number): number {
    const size = sizeOf(length);
    for (;;) {
      if (this.#isWrapped) {
        if (this.#head + size <= this.#tail) break;
        this.#dropOldest();
      } else if (this.#head + size <= LIMITS.historyBytes) {
        break;
      } else {
        this.#wrapEnd = this.#head;
        this.#head = 0;
        this.#isWrapped = true;
      }
    }
    const at = this.#head;
    this.#head += size;
    this.count++;
    return at;
  }

  /** Offset of the oldest record. */
  get oldest(): number {
    return this.#tail;
  }

  /** Offset of the record after the one at `at`. */
  after(at: number): number {
    const next = at + this.#sizeAt(at);
    return this.#isWrapped && next >= this.#wrapEnd && at >= this.#tail ? 0 : next;
  }

  #dropOldest(): void {
    this.#tail += this.#sizeAt(this.#tail);
    this.count--;
    if (this.#tail < this.#wrapEnd) return;
    this.#tail = 0;
    this.#isWrapped = false;
  }

  /** The number of addresses behind the name of a record. */
  addressesAt(at: number): number {
    return ((this.words[(at >> 2) + LENGTHS_WORD] as number) >>> ADDRESSES_SHIFT) & ADDRESSES_MASK;
  }

  #sizeAt(at: number): number {
    const count = this.addressesAt(at);
    const addresses = count === 0 ? 0 : count * addressSize((this.words[(at >> 2) + KINDS_WORD] as number) >>> 16);
    return sizeOf(((this.words[(at >> 2) + LENGTHS_WORD] as number) & 0xff) + addresses);
  }
}

function sizeOf(length: number): number {
  return FIXED_BYTES + ((length + 7) & ~7);
}

/** Addresses per query: a name with more is rare, and a record of the history has to stay short. */
const ADDRESSES_MAX = 2;
/** Records that are looked at: addresses may be behind a chain of aliases. */
const RECORDS_MAX = 8;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

/**
 * Finds the first addresses of an answer for the query history, because people ask where a name led, and the reply is gone when they do. It
 * runs on the query path, so it allocates nothing. FOUND_MAX is the most that any caller gets.
 */
export const FOUND_MAX = 256;
/** The offsets in the reply of the addresses that were found last. */
export const addressAt = new Uint32Array(FOUND_MAX);

/** The length of an address in answers of this type; 0 for other types. */
export function addressSize(type: number): number {
  return type === TYPE.A ? IPV4_BYTES : type === TYPE.AAAA ? IPV6_BYTES : 0;
}

/** Finds the first addresses of the answer, up to FOUND_MAX, and returns their number. */
export function findAddresses(outcome: Outcome, addressesMax = ADDRESSES_MAX, recordsMax = RECORDS_MAX): number {
  const { reply, type, nameEnd } = outcome;
  const size = addressSize(type);
  if (size === 0 || nameEnd === 0) return 0;
  const end = outcome.at + outcome.length;
  let at = nameEnd + QUESTION_FIXED_BYTES;
  let count = 0;
  for (let left = Math.min(outcome.answers, recordsMax); left > 0 && count < addressesMax; left--) {
    // Most owners are a pointer to the question.
    const fixed = at < end && (reply[at] as number) >= POINTER ? at + POINTER_BYTES : ownerEnd(reply, at, end);
    const data = fixed + RECORD_FIXED_BYTES;
    if (data > end) break;
    const length = u16(reply, fixed + DATA_LENGTH_AT);
    at = data + length;
    if (at > end) break;
    if (length === size && u16(reply, fixed) === type) addressAt[count++] = data;
  }
  return count;
}

function ownerEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const length = bytes[at] as number;
    if (length === 0) return at + 1;
    if (length >= POINTER) return at + POINTER_BYTES;
    at += length + 1;
  }
  return end;
}
