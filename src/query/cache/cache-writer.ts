/**
 * Keeping: what is kept of what servers say, and of how they fail: for how long, and at whose charge. Whoever asks servers
 * tells it what came of that; Memory answers from what it keeps.
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
    const { cache, pool: fleet } = parts;
    this.#owners = new CacheOwners(cache, (scope) => fleet.isSharedScope(scope));
  }

  /** What of the cache is charged to a container; to nobody: to those that are gone. */
  ownerOf(client: Client | undefined): CacheOwner | undefined {
    return this.#owners.known(client);
  }

  /** A reply has come; for how many seconds it is kept, 0 where it is not. Its TTLs are settled in place. */
  store(client: Client, lane: ServerList, key: CacheKey, reply: FreshReply): number {
    const { behaviour, policy, cache, now } = this.#parts;
    const seconds = applyCacheTtl(reply, policy.cache, lane.isDocker ? behaviour.ttlSeconds : undefined);
    const isKept = behaviour.caches && seconds > 0;
    const entry = isKept ? cache.put(key, this.#owners.of(client), reply) : undefined;
    if (entry === undefined) {
      // What is over need not stand in any more, also where what came instead is not to be kept.
      const before = isKept ? undefined : cache.find(key);
      if (before !== undefined) before.failureUntilMs = before.failedUntilMs = 0;
      return 0;
    }
    entry.storedMs = now();
    entry.expiresMs = entry.storedMs + seconds * 1000;
    entry.failureUntilMs = entry.failedUntilMs = 0;
    entry.hits = 0;
    return seconds;
  }

  /** All servers have failed, and why: whoever asks next need not find that out anew. */
  storeFailure(client: Client, key: CacheKey, why: Uint8Array | undefined, wasSilent: boolean): void {
    const { behaviour, cache, now } = this.#parts;
    const entry = behaviour.caches ? cache.put(key, this.#owners.of(client), undefined, why) : undefined;
    if (entry === undefined) return;
    const nowMs = now();
    entry.failureUntilMs = nowMs + (wasSilent ? LIMITS.failureTimeoutMs : LIMITS.failureReplyMs);
    entry.failedUntilMs = Math.max(entry.failureUntilMs, entry.hasReply ? nowMs + LIMITS.staleForMs : 0);
  }

  /** A reply that is over, for those who wait for servers that are late or have failed. */
  useStale(key: CacheKey, lane: ServerList): SharedReply | undefined {
    const { cache, reader: memory, now } = this.#parts;
    const entry = cache.find(key);
    if (entry === undefined || !memory.mayServeStale(entry, lane, now())) return undefined;
    const stale = entry.copyReply();
    // Whoever asks from now on need not find out anew that servers are silent.
    if (stale !== undefined) entry.failedUntilMs = Math.max(entry.failedUntilMs, now() + LIMITS.staleForMs);
    return stale;
  }

  /** One who waited was handed such a reply. */
  countStale(): void {
    this.#parts.reader.countStale();
  }

  /** What is kept is asked for anew; nobody else is to do the same meanwhile. */
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

  /** What is kept of one name, or all; returns how much that was. */
  removeNamed(name: string | undefined): number {
    return this.#parts.cache.removeNamed(name);
  }
}
