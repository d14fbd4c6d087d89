/**
 * Meter: counters and histograms of all queries of all containers, in memory that is allocated once and read by the
 * metrics endpoint. Counters never decrease when containers come and go, and survive a change of settings.
 *
 * The clock is read once when work on a batch of packets begins and once when its replies have been sent: a query is
 * charged the duration of its batch.
 */
import { rcodeName } from "../../base/dns/rcode.ts";
import { TYPE, typeName } from "../../base/dns/record-type.ts";
import { LIMITS } from "../../base/limits.ts";
import { Histogram } from "../../base/lib/histogram.ts";
import { LOCAL_SOURCES, type LocalSource } from "../../base/model/local-source.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import { type Outcome, STAGE } from "./outcome.ts";

/**
 * Counters of the cache. They never decrease, even when new settings replace the cache.
 */
export interface CacheCounts {
  /** Answered from a fresh entry: with records, or with a negative answer. */
  hits: number;
  denials: number;
  misses: number;
  /** Stale answers, served because all servers failed. */
  stale: number;
  /** Answered SERVFAIL at once, because all servers had just failed. */
  failures: number;
  /** Refreshed before expiry. */
  prefetches: number;
  /** Removed to make room. */
  evictions: number;
}

export function newCacheCounts(): CacheCounts {
  return { hits: 0, denials: 0, misses: 0, stale: 0, failures: 0, prefetches: 0, evictions: 0 };
}

/** Types with their own series; all others are `other`, because clients can make up any number. */
const TYPES: readonly number[] = [
  TYPE.A,
  TYPE.NS,
  TYPE.CNAME,
  TYPE.SOA,
  TYPE.PTR,
  TYPE.MX,
  TYPE.TXT,
  TYPE.AAAA,
  TYPE.SRV,
  TYPE.NAPTR,
  TYPE.DS,
  TYPE.RRSIG,
  TYPE.NSEC,
  TYPE.DNSKEY,
  TYPE.SVCB,
  TYPE.HTTPS,
  TYPE.IXFR,
  TYPE.AXFR,
  TYPE.ANY,
];
export const TYPE_NAMES: readonly string[] = [...TYPES.map(typeName), "other"];
const OTHER_TYPE = TYPES.length;
const TYPE_INDEX = new Uint8Array(256).fill(OTHER_TYPE);
for (const [index, type] of TYPES.entries()) TYPE_INDEX[type] = index;

export const PROTOCOLS = ["udp", "tcp"] as const;
/** IPv4 and IPv6, numbered as in CoreDNS. */
export const FAMILIES = ["1", "2"] as const;
/** How a query was answered. */
export const OUTCOMES = ["local", "cached", "forwarded", "refused", "upstream_failed"] as const;
const LOCAL = 0;
const CACHED = 1;
const FORWARDED = 2;
const REFUSED = 3;
const UPSTREAM_FAILED = 4;

/** What comes of queries that were not answered at once; of all others a server was asked. */
const LATE: ReadonlyMap<number, number> = new Map([
  [QUERY_RESULT.local, LOCAL],
  [QUERY_RESULT.cached, CACHED],
  [QUERY_RESULT.refused, REFUSED],
  [QUERY_RESULT.failed, UPSTREAM_FAILED],
]);

/** The codes that fit into a header and have a name. */
const RCODES = 11;
export const RCODE_NAMES: readonly string[] = [
  ...Array.from({ length: RCODES }, (_, rcode) => rcodeName(rcode)),
  "other",
];
const OTHER_RCODE = RCODE_NAMES.length - 1;

/** The result of one query to a server: the rcode, or why there was no reply. */
const FAILURES = ["dial_error", "timeout", "error"] as const;
export const RESULTS: readonly string[] = [...RCODE_NAMES, ...FAILURES];
export type UpstreamFailure = (typeof FAILURES)[number];

const MS = 1_000;

/** Answers that the kernel gave. */
export interface RepeatedCounts {
  /** Passes those since the last call, by kind. */
  takeCounts(visit: (kind: RepeatedKind, answers: number) => void): void;
}

/** What answers have in common that are counted together. */
interface RepeatedKind {
  readonly type: number;
  readonly rcode: number;
  readonly source: LocalSource | "cache";
}

export class Meter {
  readonly #requests = new Float64Array(PROTOCOLS.length * FAMILIES.length * TYPE_NAMES.length);
  readonly #responses = new Float64Array(RCODE_NAMES.length);
  readonly #sources = new Float64Array(LOCAL_SOURCES.length);
  /** There is one for each type, protocol and outcome. */
  readonly durations = new Histogram(TYPE_NAMES.length * PROTOCOLS.length * OUTCOMES.length);
  /** By server, protocol and result. */
  readonly upstream = new Histogram((LIMITS.meteredServers + 1) * PROTOCOLS.length * RESULTS.length);
  readonly cache = newCacheCounts();
  /** The kernel's answers for all containers. */
  repeated: RepeatedCounts | undefined;
  readonly counts = { dropped: 0, refused: 0, defects: 0 };
  readonly #servers = new Map<string, number>();
  /** How many of these servers belong to a container. */
  #containerServers = 0;
  readonly #serverOf = new WeakMap<Server, number>();
  readonly #marks = new Uint16Array(LIMITS.udpBatch);
  #marked = 0;
  #startMs = 0;
  #family = 0;

  /** Work on a batch of packets begins. */
  begin(isIPv6: boolean): void {
    this.#marked = 0;
    this.#family = isIPv6 ? 1 : 0;
    this.#startMs = performance.now();
  }

  /** The replies of the batch have been sent. */
  end(): void {
    const seconds = (performance.now() - this.#startMs) / MS;
    const bucket = this.durations.bucketOf(seconds);
    for (let at = 0; at < this.#marked; at++) this.durations.addTo(this.#marks[at] as number, bucket, seconds);
    this.#marked = 0;
  }

  /** Counts the outcome of one query. */
  record({ stage, result, source, type, isStream, isOwn, isHeld, rcode, tookMs }: Outcome): void {
    if (isOwn) return;
    if (isHeld) return this.#countRequest(type, isStream);
    switch (stage) {
      case STAGE.probe:
        return;
      case STAGE.ignored:
        this.counts.dropped++;
        return;
      case STAGE.completed:
        if (result === QUERY_RESULT.local) this.#countSource(source);
        return this.#countLate(type, isStream, result, rcode, tookMs);
      case STAGE.deferred:
        return this.#countRequest(type, isStream);
      default: {
        // The type of a malformed query is not reliable.
        const countedType = stage === STAGE.malformed ? 0 : type;
        this.#countRequest(countedType, isStream);
        if (stage === STAGE.local && result === QUERY_RESULT.local) this.#countSource(source);
        this.#countImmediate(countedType, isStream, rcode, stage === STAGE.cache);
      }
    }
  }

  /** Counts what the kernel answered since the last call. Such answers are not timed. */
  collect(): void {
    this.repeated?.takeCounts(({ type, rcode, source }, answers) => {
      const series = typeIndex(type);
      this.#requests[series] = (this.#requests[series] as number) + answers;
      this.#respond(rcode, answers);
      if (source === "cache") this.cache[rcode === 0 ? "hits" : "denials"] += answers;
      else this.#sources[source] = (this.#sources[source] as number) + answers;
    });
  }

  #countRequest(type: number, isStream: boolean): void {
    const at = ((isStream ? 1 : 0) * FAMILIES.length + this.#family) * TYPE_NAMES.length + typeIndex(type);
    this.#requests[at] = (this.#requests[at] as number) + 1;
  }

  /** A query was answered at once. */
  #countImmediate(type: number, isStream: boolean, rcode: number, wasCached: boolean): void {
    this.#respond(rcode);
    if (this.#marked >= this.#marks.length) this.end();
    this.#marks[this.#marked++] = seriesOf(type, isStream, wasCached ? CACHED : LOCAL);
  }

  #countSource(source: LocalSource): void {
    this.#sources[source] = (this.#sources[source] as number) + 1;
  }

  /** A query was answered later: by a server, or after it was delayed or held. */
  #countLate(type: number, isStream: boolean, result: number, rcode: number, tookMs: number): void {
    this.#respond(rcode);
    const outcome = LATE.get(result) ?? FORWARDED;
    if (outcome === REFUSED) this.counts.refused++;
    this.durations.add(seriesOf(type, isStream, outcome), tookMs / MS);
  }

  recordReply(server: Server, isStream: boolean, rcode: number, tookMs: number): void {
    this.#countExchange(server, isStream, Math.min(rcode, OTHER_RCODE), tookMs);
  }

  recordFailure(server: Server, isStream: boolean, failure: UpstreamFailure, tookMs: number): void {
    this.#countExchange(server, isStream, RCODE_NAMES.length + FAILURES.indexOf(failure), tookMs);
  }

  requests(protocol: number, family: number, type: number): number {
    return this.#requests[(protocol * FAMILIES.length + family) * TYPE_NAMES.length + type] as number;
  }

  responses(rcode: number): number {
    return this.#responses[rcode] as number;
  }

  /** Local answers of a source. */
  localAnswers(source: number): number {
    return this.#sources[source] as number;
  }

  /** Servers with their own series, and their numbers; all others are `other`. */
  servers(): [string, number][] {
    return [...this.#servers, ["other", LIMITS.meteredServers]];
  }

  #respond(rcode: number, times = 1): void {
    const at = Math.min(rcode, OTHER_RCODE);
    this.#responses[at] = (this.#responses[at] as number) + times;
  }

  #countExchange(server: Server, isStream: boolean, result: number, tookMs: number): void {
    this.upstream.add(upstreamSeries(this.#serverIndex(server), isStream ? 1 : 0, result), tookMs / MS);
  }

  #serverIndex(server: Server): number {
    const known = this.#serverOf.get(server);
    if (known !== undefined) return known;
    const text = serverText(server);
    const index = this.#servers.get(text) ?? this.#assignIndex(server, text);
    this.#serverOf.set(server, index);
    return index;
  }

  #assignIndex({ from }: Server, text: string): number {
    const isContainers = from === "container";
    const isFull = isContainers && this.#containerServers >= LIMITS.meteredContainersServers;
    if (isFull || this.#servers.size >= LIMITS.meteredServers) return LIMITS.meteredServers;
    if (isContainers) this.#containerServers++;
    const index = this.#servers.size;
    this.#servers.set(text, index);
    return index;
  }
}

export function durationSeries(type: number, protocol: number, outcome: number): number {
  return (type * PROTOCOLS.length + protocol) * OUTCOMES.length + outcome;
}

export function upstreamSeries(server: number, protocol: number, result: number): number {
  return (server * PROTOCOLS.length + protocol) * RESULTS.length + result;
}

function seriesOf(type: number, isStream: boolean, outcome: number): number {
  return durationSeries(typeIndex(type), isStream ? 1 : 0, outcome);
}

function typeIndex(type: number): number {
  return type < TYPE_INDEX.length ? (TYPE_INDEX[type] as number) : OTHER_TYPE;
}
