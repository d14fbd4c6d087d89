/**
 * CacheWriter: stores upstream replies and failures: for how long, and charged to which container. The forwarder
 * reports results here; CacheReader answers from them.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { UpstreamPolicy, CachePolicy } from "../../base/model/upstream-policy.ts";
import type { Client } from "../client/client.ts";
import type { NameserverPool, ServerList } from "../upstream/nameserver-pool.ts";
import type { FreshReply, SharedReply } from "../wire/shared-reply.ts";
import type { CacheEntry, CacheKey } from "./entry.ts";
import type { CacheReader } from "./cache-reader.ts";
import { type CacheOwner, type ReplyCache, newCacheOwner } from "./reply-cache.ts";
import { setU32, u32 } from "../../base/dns/bytes.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { ttlOf } from "../../base/dns/record.ts";

interface CacheWriterParts {
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
    // While clients get a stale answer, the failure is cached briefly, so that a fresh answer need not wait.
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

/**
 * Which container the cache entries are charged to. When a container is detached, entries that only it
 * could use are removed, and the others are charged to no container.
 */
class CacheOwners {
  readonly #cache: ReplyCache;
  readonly #isShared: (scope: number) => boolean;
  readonly #detached = newCacheOwner();
  readonly #owners = new WeakMap<Client, CacheOwner>();

  constructor(cache: ReplyCache, isShared: (scope: number) => boolean) {
    this.#cache = cache;
    this.#isShared = isShared;
  }

  /** The usage of a container, if anything was cached for it; without one, that of detached containers. */
  known(client: Client | undefined): CacheOwner | undefined {
    return client === undefined ? this.#detached : this.#owners.get(client);
  }

  of(client: Client): CacheOwner {
    if (client.isClosed) return this.#detached;
    const known = this.#owners.get(client);
    if (known !== undefined) return known;
    const owner = newCacheOwner();
    this.#owners.set(client, owner);
    // A container may outlive this object, which new settings replace; the callback must not keep it alive.
    const self = new WeakRef(this);
    client.onClose(() => {
      const owners = self.deref();
      if (owners !== undefined) owners.#release(owner);
    });
    return owner;
  }

  #release(owner: CacheOwner): void {
    this.#cache.transfer(owner, this.#detached, this.#isShared);
  }
}

/**
 * How long a reply is cached, in seconds: as long as its records allow, or for a negative answer as its SOA says (RFC 2308), within the
 * configured minimum and maximum; 0 if it is not cached. `secondsMax` is a further limit, for some sources. The TTLs in the reply are
 * rewritten accordingly, so that clients count the same time as the cache.
 */
export function applyCacheTtl(reply: FreshReply, policy: CachePolicy, secondsMax = Number.POSITIVE_INFINITY): number {
  const seconds = Math.min(cacheSeconds(reply, policy), secondsMax);
  const floor = Math.min(policy.ttlSecondsMin, secondsMax);
  const ceiling = reply.isNegative ? Math.max(seconds, floor) : Math.min(policy.ttlSecondsMax, secondsMax);
  const { bytes, start } = reply;
  for (const at of reply.ttlOffsets) {
    const ttl = Math.max(floor, Math.min(ceiling, ttlOf(u32(bytes, start + at))));
    setU32(bytes, start + at, ttl);
  }
  return seconds;
}

/** Why a reply is not cached, for `dns11 explain`. */
export function notCachedReason({ rcode, isTruncated, isNegative, soaSeconds }: FreshReply): string {
  if (isTruncated) return "the reply is truncated";
  if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return "the reply has an error code";
  if (isNegative && soaSeconds === undefined) return "a negative reply without an SOA record";
  return "its TTL is 0, or the settings of the cache exclude it";
}

function cacheSeconds(reply: FreshReply, policy: CachePolicy): number {
  const isAnswer = reply.rcode === RCODE.NOERROR || reply.rcode === RCODE.NXDOMAIN;
  if (!isAnswer || reply.isTruncated) return 0;
  const { ttlSecondsMin, ttlSecondsMax, negativeSecondsMax, negativeSecondsWithoutSoa } = policy;
  if (!reply.isNegative) return clamp(reply.ttlSeconds ?? 0, ttlSecondsMin, ttlSecondsMax);
  if (negativeSecondsMax === 0) return 0;
  const negative = reply.soaSeconds ?? negativeSecondsWithoutSoa;
  // A CNAME chain that ends in a negative answer is cached no longer than its CNAMEs.
  const chain = reply.answers > 0 ? (reply.ttlSeconds ?? 0) : Number.POSITIVE_INFINITY;
  const isReferral = reply.soaSeconds === undefined && negativeSecondsWithoutSoa === 0;
  return isReferral ? 0 : clamp(Math.min(negative, chain), ttlSecondsMin, negativeSecondsMax);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
