/**
 * CacheWriter: stores upstream replies and failures: for how long, and charged to which container. The forwarder
 * reports results here; CacheReader answers from them.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { UpstreamPolicy } from "../../base/model/upstream-policy.ts";
import type { Client } from "../client/client.ts";
import type { NameserverPool, ServerList } from "../upstream/nameserver-pool.ts";
import type { FreshReply, SharedReply } from "../wire/shared-reply.ts";
import type { CacheEntry } from "./entry.ts";
import type { CacheKey } from "./key.ts";
import { applyCacheTtl } from "./cache-ttl.ts";
import type { CacheReader } from "./cache-reader.ts";
import { CacheOwners } from "./owners.ts";
import type { CacheOwner, ReplyCache } from "./reply-cache.ts";

export interface CacheWriterParts {
  readonly behaviour: Behaviour;
  readonly policy: UpstreamPolicy;
  readonly pool: NameserverPool;
  readonly cache: ReplyCache;
  readonly reader: CacheReader;
  readonly now: () => number;
}

export class CacheWriter {
  readonly #parts: CacheWriterParts;
  readonly #owners: CacheOwners;

  constructor(parts: CacheWriterParts) {
    this.#parts = parts;
    const { cache, pool } = parts;
    this.#owners = new CacheOwners(cache, (scope) => pool.isSharedScope(scope));
  }

  /** The cache usage of a container; without one, that of detached containers. */
  ownerOf(client: Client | undefined): CacheOwner | undefined {
    return this.#owners.known(client);
  }

  /** Stores a reply, if it is to be kept; returns for how many seconds, 0 if it is not cached. Adjusts its TTLs in place. */
  store(
    client: Client,
    serverList: ServerList,
    key: CacheKey,
    reply: FreshReply,
    {
      secondsMax,
      isKept,
      wasAskedForAd,
    }: { readonly secondsMax: number; readonly isKept: boolean; readonly wasAskedForAd: boolean },
  ): number {
    const { behaviour, policy, cache, now } = this.#parts;
    const ofDocker = serverList.isDocker ? behaviour.ttlSeconds : secondsMax;
    const seconds = applyCacheTtl(reply, policy.cache, Math.min(ofDocker, secondsMax));
    const isCacheable = behaviour.caches && isKept && seconds > 0;
    const entry = isCacheable ? cache.put(key, this.#owners.of(client), reply) : undefined;
    if (entry === undefined) {
      if (!isCacheable) this.endFailure(key);
      return 0;
    }
    entry.storedMs = now();
    entry.expiresMs = entry.storedMs + seconds * 1000;
    entry.failureUntilMs = entry.failedUntilMs = 0;
    entry.hits = 0;
    entry.wasAskedForAd = wasAskedForAd;
    return seconds;
  }

  /** The servers work again, so an old entry need not be served stale, even if the new reply is not cached. */
  endFailure(key: CacheKey): void {
    const old = this.#parts.cache.find(key);
    if (old !== undefined) old.failureUntilMs = old.failedUntilMs = 0;
  }

  /** All servers have failed: following queries fail at once, with the same reason. */
  storeFailure(client: Client, key: CacheKey, why: Uint8Array | undefined, wasSilent: boolean): void {
    const { behaviour, cache, now } = this.#parts;
    const entry = behaviour.caches ? cache.put(key, this.#owners.of(client), undefined, why) : undefined;
    if (entry === undefined) return;
    const nowMs = now();
    // Meanwhile clients get a stale answer: the fresh one must not wait.
    const isBrief = wasSilent || entry.hasReply;
    entry.failureUntilMs = nowMs + (isBrief ? LIMITS.failureTimeoutMs : LIMITS.failureReplyMs);
    entry.failedUntilMs = Math.max(entry.failureUntilMs, entry.hasReply ? nowMs + LIMITS.staleForMs : 0);
  }

  /** A stale answer for clients whose servers are late or have failed. Following queries get it at once. */
  useStale(key: CacheKey, serverList: ServerList): SharedReply | undefined {
    const { cache, reader, now } = this.#parts;
    const entry = cache.find(key);
    if (entry === undefined || !reader.mayServeStale(entry, serverList, now())) return undefined;
    const stale = entry.copyReply();
    // Following queries need not wait for the silent servers.
    if (stale !== undefined) entry.failedUntilMs = Math.max(entry.failedUntilMs, now() + LIMITS.staleForMs);
    return stale;
  }

  /** Counts one client that got a stale answer. */
  countStale(): void {
    this.#parts.reader.countStale();
  }

  /** Marks an entry as being refreshed, so that there is only one refresh at a time. */
  beginRefresh(entry: CacheEntry): void {
    this.#parts.cache.counts.prefetches++;
    entry.isRefreshing = true;
  }

  endRefresh(key: CacheKey): void {
    const entry = this.#parts.cache.find(key);
    if (entry !== undefined) entry.isRefreshing = false;
  }

  clear(): void {
    this.#parts.cache.clear();
  }

  /** Removes the entries of one name, or all; returns how many. */
  removeNamed(name: string | undefined): number {
    return this.#parts.cache.removeNamed(name);
  }
}
