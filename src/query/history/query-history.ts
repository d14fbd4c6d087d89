/**
 * QueryHistory: the recent queries of one container and their results. It is written on the query path, so writing
 * copies bytes and allocates nothing; readers pay for building strings and objects.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { presentation } from "../../base/dns/name.ts";
import { addressText } from "../../base/model/address.ts";
import { LOCAL_SOURCES } from "../../base/model/local-source.ts";
import { type QueryRecord, QUERY_RESULT, QUERY_RESULTS } from "../../base/model/query-record.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import type { RecordingPolicy } from "../record/recording-policy.ts";
import { addressAt, addressSize, findAddresses } from "./answer-addresses.ts";
import { ADDRESSES_SHIFT, NAME_AT, Ring } from "./ring.ts";

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

/** Queries that were answered without this process, of which it records the last ones when the history is read. */
export interface KernelAnswered {
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
  readonly firstSeq = Date.now() * 1000;
  #nextSeq = this.firstSeq;
  #servers: string[] | undefined;
  /** The rules of leases and policies that had a say in an answer. */
  #rules: string[] = [];
  /** The server of the last reply and its index: usually also that of the next reply. */
  #lastServer: Server | undefined;
  #lastIndex = 0;
  /** Arrival time of the queries that are being answered, on the clock of `performance.now`. */
  #nowMs = 0;
  byKernel: KernelAnswered | undefined;
  /** Queries without a record, before the one of that number. */
  readonly #gaps: { readonly before: number; readonly count: number }[] = [];

  constructor(containerId = "", policy: RecordingPolicy = DISABLED) {
    this.containerId = containerId;
    this.#policy = policy;
  }

  get isEnabled(): boolean {
    return this.#policy.isEnabled;
  }

  /** Sets the time for a batch of queries; the clock is read once. */
  tick(nowMs?: number): void {
    if (this.#policy.isEnabled) this.#nowMs = nowMs ?? performance.now();
  }

  /** There were so many queries without a record, before the one of that number. */
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
    // What is local has no server, so its source is in that place.
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
