/**
 * Memory: answers a question from what servers said before, at once. What is about to be over is asked anew while it is
 * still good; what is over stands in for servers that have just failed.
 */
import { EXTENDED_ERROR, errorOption } from "../../base/dns/extended-error.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { LIMITS } from "../../base/limits.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { CachePolicy } from "../../base/model/upstream-policy.ts";
import type { Route } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import type { NameserverPool, ServerList } from "../upstream/nameserver-pool.ts";
import type { Outcome } from "../record/outcome.ts";
import type { Trace } from "../trace.ts";
import type { Question } from "../wire/question.ts";
import { type RelayOptions, relay, relayFailure } from "../wire/relay.ts";
import type { CacheEntry } from "./entry.ts";
import { type LookupKey, keyHash } from "./key.ts";
import type { ReplyCache } from "./reply-cache.ts";
import { NOT_SHAREABLE, asksForAuthentic, shareBits } from "./shareable.ts";

/** Nothing is known that would do. */
export const CACHE_MISS = 0;

/** Told to ask for an entry anew. */
type OnRefresh = (client: Client, lane: ServerList, entry: CacheEntry) => void;

export interface CacheReaderParts {
  readonly cache: ReplyCache;
  readonly pool: NameserverPool;
  readonly behaviour: Behaviour;
  readonly policy: CachePolicy;
  readonly now: () => number;
  readonly onRefresh: OnRefresh;
}

const STALE_ANSWER = errorOption(EXTENDED_ERROR.staleAnswer, "");
const STALE_DENIAL = errorOption(EXTENDED_ERROR.staleDenial, "");

export class CacheReader {
  readonly #parts: CacheReaderParts;
  /** Told of what is found while somebody has it explained. */
  trace: Trace | undefined;
  /** Filled in for each question; nothing is made on this way. */
  readonly #key = { hash: 0, name: new Uint8Array(0), length: 0, type: 0, bits: 0, scope: 0 } satisfies LookupKey;
  readonly #asked = { limit: 0, hasOpt: false, isDnssecOk: false, wantsAuthentic: false, isLocalName: false };
  readonly #age = { seconds: 0 };

  constructor(parts: CacheReaderParts) {
    this.#parts = parts;
  }

  /** Answers over the query, in place; the length of the reply, or UNKNOWN. How it came about is told `outcome`. */
  answer(
    client: Client,
    block: Buffer,
    question: Question,
    route: Route,
    limit: number,
    isLocalName: boolean,
    outcome: Outcome,
  ): number {
    const bits = shareBits(block, question);
    if (bits === NOT_SHAREABLE) {
      this.trace?.record("cache", "a question of its own, to which no kept reply is the answer");
      return this.#miss();
    }
    const { cache, pool: fleet, now } = this.#parts;
    const lane = fleet.serverListFor(client, route);
    const entry = cache.lookUp(this.#keyOf(question, bits, lane.scope));
    if (entry === undefined) {
      this.trace?.record("cache", "no reply of these servers is kept for it");
      return this.#miss();
    }
    const nowMs = now();
    const asked = this.#askedOf(block, question, limit, isLocalName);
    const { offset, end } = question;
    const reply = nowMs < entry.expiresMs ? entry.reply : undefined;
    if (reply !== undefined) {
      cache.touch(entry);
      entry.hits++;
      if (reply.rcode === RCODE.NOERROR) cache.counts.hits++;
      else cache.counts.denials++;
      this.trace?.recordAnswer(
        "cache",
        `kept ${ago(nowMs - entry.storedMs)}, good for ${seconds(entry.expiresMs - nowMs)} more`,
      );
      outcome.result = QUERY_RESULT.cached;
      this.#age.seconds = Math.floor((nowMs - entry.storedMs) / 1000);
      const length = relay(block, offset, asked, reply, this.#age);
      if (this.#isDue(entry, nowMs)) this.#refresh(client, lane, entry);
      return length;
    }
    if (nowMs >= entry.failedUntilMs) {
      this.trace?.record("cache", expiredText(entry, nowMs));
      return this.#miss();
    }
    const stale = this.mayServeStale(entry, lane, nowMs) ? entry.reply : undefined;
    if (stale === undefined) {
      if (nowMs >= entry.failureUntilMs) {
        this.trace?.record("cache", expiredText(entry, nowMs));
        return this.#miss();
      }
      cache.counts.failures++;
      outcome.result = QUERY_RESULT.failed;
      this.trace?.recordAnswer(
        "cache",
        `all servers have just failed; asked again in ${seconds(entry.failureUntilMs - nowMs)}`,
      );
      return relayFailure(block, offset, end - offset, asked, RCODE.SERVFAIL, entry.failure);
    }
    cache.touch(entry);
    this.countStale();
    this.trace?.recordAnswer(
      "cache",
      `all servers have failed, and the reply that is over since ${seconds(nowMs - entry.expiresMs)} stands in (stale)`,
    );
    outcome.result = QUERY_RESULT.stale;
    const length = relay(block, offset, asked, stale, STALE_AGE, staleError(stale));
    // As long as servers fail they are tried, but not for everyone who asks.
    if (nowMs >= entry.failureUntilMs) this.#refresh(client, lane, entry);
    return length;
  }

  /** A reply that is over has stood in for servers that failed. */
  countStale(): void {
    this.#parts.cache.counts.stale++;
  }

  /** Whether what is kept may stand in for servers that fail. */
  mayServeStale(entry: CacheEntry, lane: ServerList, nowMs: number): boolean {
    const { behaviour, policy } = this.#parts;
    const isOver = nowMs >= entry.expiresMs + policy.staleSecondsMax * 1000;
    return behaviour.servesStale && !lane.isDocker && !isOver && entry.hasReply;
  }

  #isDue(entry: CacheEntry, nowMs: number): boolean {
    const leftMs = entry.expiresMs - nowMs;
    return (
      this.#parts.behaviour.prefetches &&
      entry.hits >= LIMITS.prefetchHits &&
      leftMs < (entry.expiresMs - entry.storedMs) * LIMITS.prefetchShare
    );
  }

  #refresh(client: Client, lane: ServerList, entry: CacheEntry): void {
    if (entry.isRefreshing) return;
    this.trace?.record("cache", "it is asked for anew meanwhile, for whoever asks next");
    this.#parts.onRefresh(client, lane, entry);
  }

  #miss(): typeof CACHE_MISS {
    this.#parts.cache.counts.misses++;
    return CACHE_MISS;
  }

  #keyOf(question: Question, bits: number, scope: number): LookupKey {
    const key = this.#key;
    key.hash = keyHash(question.hash, question.type, bits, scope);
    key.name = question.folded;
    key.length = question.foldedLength;
    key.type = question.type;
    key.bits = bits;
    key.scope = scope;
    return key;
  }

  #askedOf(block: Buffer, { offset, records }: Question, limit: number, isLocalName: boolean): RelayOptions {
    const asked = this.#asked;
    asked.limit = this.#parts.behaviour.handlesTruncation ? limit : Number.POSITIVE_INFINITY;
    asked.hasOpt = records.optCount > 0;
    asked.isDnssecOk = records.isDnssecOk;
    asked.wantsAuthentic = records.isDnssecOk || asksForAuthentic(block, offset);
    asked.isLocalName = isLocalName;
    return asked;
  }
}

/** A reply that is over says so, and is not to be remembered for long. */
export const STALE_AGE = { seconds: 0, staleTtl: LIMITS.staleTtlSeconds };

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
}

function expiredText({ hasReply, expiresMs }: CacheEntry, nowMs: number): string {
  if (!hasReply) return "no reply is kept; when it was last asked for all servers failed";
  return `the reply that is kept is over since ${seconds(nowMs - expiresMs)}`;
}

function ago(ms: number): string {
  return `${seconds(ms)} ago`;
}

export function staleError({ rcode }: { readonly rcode: number }): Buffer {
  return rcode === RCODE.NXDOMAIN ? STALE_DENIAL : STALE_ANSWER;
}
