/**
 * CacheReader: answers a question from the cache at once. Entries that are about to expire are refreshed early; expired
 * ones are served stale if servers have just failed.
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
import { type CacheCounts, newCacheCounts } from "../record/meter.ts";
import type { Outcome } from "../record/outcome.ts";
import type { Repeatable } from "../repeater.ts";
import type { Trace } from "../trace.ts";
import type { Question } from "../wire/question.ts";
import { type RelayOptions, relay, relayFailure, rotateAddresses } from "../wire/relay.ts";
import type { SharedReply } from "../wire/shared-reply.ts";
import { type CacheEntry, type LookupKey, keyHash } from "./entry.ts";
import type { ReplyCache } from "./reply-cache.ts";
import { NOT_SHAREABLE, requestsAuthentic, shareBits } from "../wire/hop-options.ts";

export const CACHE_MISS = 0;

/** Starts to refresh an entry in the background. Returns whether that has begun. */
type OnRefresh = (client: Client, serverList: ServerList, entry: CacheEntry) => boolean;

interface CacheReaderParts {
  readonly cache: ReplyCache;
  readonly pool: NameserverPool;
  readonly behaviour: Behaviour;
  readonly policy: CachePolicy;
  readonly now: () => number;
  readonly onRefresh: OnRefresh;
}

/** Counts the lookups of queries that dns11 itself sent. Nothing reads it. */
const UNREAD_COUNTS = newCacheCounts();
const STALE_ANSWER = errorOption(EXTENDED_ERROR.staleAnswer, "");
const STALE_DENIAL = errorOption(EXTENDED_ERROR.staleDenial, "");

export class CacheReader {
  readonly #parts: CacheReaderParts;
  /** Set while a query is explained. */
  trace: Trace | undefined;
  /** Reused for each question: nothing is allocated here. */
  readonly #key = { hash: 0, name: new Uint8Array(0), length: 0, type: 0, bits: 0, scope: 0 } satisfies LookupKey;
  readonly #options = {
    limit: 0,
    hasOpt: false,
    isDnssecOk: false,
    wantsAuthentic: false,
    isLocalName: false,
    endsChain: false,
  };
  readonly #age = { seconds: 0 };
  /** How the last answer may be repeated, if it was a hit. */
  readonly repeatable: Repeatable = { reply: undefined, sinceMs: 0, forMs: 0, rotated: 0 };

  constructor(parts: CacheReaderParts) {
    this.#parts = parts;
  }

  /** Answers in place, over the query; returns the length of the reply, or CACHE_MISS. Sets the result in `outcome`. */
  answer(
    client: Client,
    block: Buffer,
    question: Question,
    route: Route,
    limit: number,
    isLocalName: boolean,
    outcome: Outcome,
  ): number {
    const { cache, pool, now } = this.#parts;
    const counts = outcome.isOwn ? UNREAD_COUNTS : cache.counts;
    const bits = shareBits(block, question);
    if (bits === NOT_SHAREABLE) {
      this.trace?.record("cache", "not cacheable: the query has special flags, options or records");
      return miss(counts);
    }
    const serverList = pool.serverListFor(client, route);
    const entry = cache.lookUp(this.#keyOf(question, bits, serverList.scope));
    if (entry === undefined) {
      this.trace?.record("cache", "miss: no entry for these servers");
      return miss(counts);
    }
    const nowMs = now();
    const options = this.#optionsOf(block, question, limit, isLocalName);
    // A policy judges what the aliases lead to, so they stay in the reply.
    this.#options.endsChain = !options.hasOpt && client.policy === undefined;
    const { offset, end } = question;
    const isFresh = nowMs < entry.expiresMs;
    const lacksAd = isFresh && options.wantsAuthentic && !entry.wasAskedForAd;
    const reply = isFresh && !lacksAd ? entry.readReply() : undefined;
    if (reply !== undefined) {
      cache.touch(entry);
      if (!outcome.isOwn) entry.hits++;
      if (reply.rcode === RCODE.NOERROR) counts.hits++;
      else counts.denials++;
      this.trace?.recordAnswer(
        "cache",
        `hit: stored ${ago(nowMs - entry.storedMs)}, expires in ${seconds(entry.expiresMs - nowMs)}`,
      );
      outcome.result = QUERY_RESULT.cached;
      this.#age.seconds = Math.floor((nowMs - entry.storedMs) / 1000);
      const length = relay(block, offset, options, reply, this.#age);
      this.repeatable.rotated = rotateAddresses(block, offset, reply, question.type);
      this.#setRepeatable(reply, entry, nowMs);
      if (this.#isDue(entry, nowMs)) this.#refresh(client, serverList, entry);
      return length;
    }
    if (nowMs >= entry.failedUntilMs) {
      this.trace?.record("cache", lacksAd ? "miss: the servers were asked without AD" : expiredText(entry, nowMs));
      return miss(counts);
    }
    const stale = this.mayServeStale(entry, serverList, nowMs) ? entry.readReply() : undefined;
    if (stale === undefined) {
      if (nowMs >= entry.failureUntilMs) {
        this.trace?.record("cache", expiredText(entry, nowMs));
        return miss(counts);
      }
      counts.failures++;
      outcome.result = QUERY_RESULT.failed;
      this.trace?.recordAnswer(
        "cache",
        `all servers have just failed; next try in ${seconds(entry.failureUntilMs - nowMs)}`,
      );
      return relayFailure(block, offset, end - offset, options, RCODE.SERVFAIL, entry.failure);
    }
    cache.touch(entry);
    counts.stale++;
    this.trace?.recordAnswer("cache", `all servers have failed; stale answer, expired ${ago(nowMs - entry.expiresMs)}`);
    outcome.result = QUERY_RESULT.stale;
    const length = relay(block, offset, options, stale, STALE_AGE, staleError(stale));
    rotateAddresses(block, offset, stale, question.type);
    // While servers fail they are retried, but not for every client query.
    if (nowMs >= entry.failureUntilMs) this.#refresh(client, serverList, entry);
    return length;
  }

  countStale(): void {
    this.#parts.cache.counts.stale++;
  }

  mayServeStale(entry: CacheEntry, serverList: ServerList, nowMs: number): boolean {
    const { behaviour, policy } = this.#parts;
    const isTooOld = nowMs >= entry.expiresMs + policy.staleSecondsMax * 1000;
    return behaviour.servesStale && !serverList.isDocker && !isTooOld && entry.hasReply;
  }

  #isDue(entry: CacheEntry, nowMs: number): boolean {
    return this.#parts.behaviour.prefetches && entry.hits >= LIMITS.prefetchHits && nowMs > dueMs(entry);
  }

  #setRepeatable(reply: SharedReply, entry: CacheEntry, nowMs: number): void {
    const { repeatable } = this;
    // An extended error is only for clients with EDNS, so a reply that has one is not repeated.
    repeatable.reply = reply.extendedError === undefined && !reply.isTruncated ? reply : undefined;
    repeatable.sinceMs = nowMs - entry.storedMs - this.#age.seconds * 1000;
    repeatable.forMs = dueMs(entry) - nowMs;
  }

  #refresh(client: Client, serverList: ServerList, entry: CacheEntry): void {
    // A refresh leaves the machine at a time that the client chooses, and would not count for its policy.
    if (entry.isRefreshing || client.policy?.isEnforcing === true) return;
    if (this.#parts.onRefresh(client, serverList, entry)) this.trace?.record("cache", "refreshed in the background");
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

  #optionsOf(block: Buffer, { offset, records }: Question, limit: number, isLocalName: boolean): RelayOptions {
    const options = this.#options;
    options.limit = this.#parts.behaviour.handlesTruncation ? limit : Number.POSITIVE_INFINITY;
    options.hasOpt = records.optCount > 0;
    options.isDnssecOk = records.isDnssecOk;
    options.wantsAuthentic = records.isDnssecOk || requestsAuthentic(block, offset);
    options.isLocalName = isLocalName;
    return options;
  }
}

/** When an entry is due to be refreshed, if it is popular. */
function dueMs({ expiresMs, storedMs }: CacheEntry): number {
  return expiresMs - (expiresMs - storedMs) * LIMITS.prefetchShare;
}

function miss(counts: CacheCounts): typeof CACHE_MISS {
  counts.misses++;
  return CACHE_MISS;
}

/** A stale answer gets a short TTL (RFC 8767). */
export const STALE_AGE = { seconds: 0, staleTtl: LIMITS.staleTtlSeconds };

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
}

function expiredText({ hasReply, expiresMs }: CacheEntry, nowMs: number): string {
  if (!hasReply) return "miss: no reply, because all servers failed at the last query";
  return `miss: expired ${ago(nowMs - expiresMs)}`;
}

function ago(ms: number): string {
  return `${seconds(ms)} ago`;
}

export function staleError({ rcode }: { readonly rcode: number }): Buffer {
  return rcode === RCODE.NXDOMAIN ? STALE_DENIAL : STALE_ANSWER;
}
