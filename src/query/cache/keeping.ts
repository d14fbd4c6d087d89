/**
 * Keeping: what is kept of what servers say, and of how they fail: for how long, and at whose charge. Whoever asks servers
 * tells it what came of that; Memory answers from what it keeps.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { UpstreamPolicy } from "../../base/model/upstream-policy.ts";
import type { Client } from "../client/client.ts";
import type { Fleet, Lane } from "../upstream/fleet.ts";
import type { FreshReply, SharedReply } from "../wire/shared-reply.ts";
import type { Entry } from "./entry.ts";
import type { Key } from "./key.ts";
import { settleLifetime } from "./lifetime.ts";
import type { Memory } from "./memory.ts";
import { Owners } from "./owners.ts";
import type { Owner, ReplyCache } from "./reply-cache.ts";

export interface KeepingParts {
  readonly behaviour: Behaviour;
  readonly policy: UpstreamPolicy;
  readonly fleet: Fleet;
  readonly cache: ReplyCache;
  readonly memory: Memory;
  readonly now: () => number;
}

export class Keeping {
  readonly #parts: KeepingParts;
  readonly #owners: Owners;

  constructor(parts: KeepingParts) {
    this.#parts = parts;
    const { cache, fleet } = parts;
    this.#owners = new Owners(cache, (scope) => fleet.isShared(scope));
  }

  /** What of the cache is charged to a container; to nobody: to those that are gone. */
  ownerOf(client: Client | undefined): Owner | undefined {
    return this.#owners.known(client);
  }

  /** A reply has come; for how many seconds it is kept, 0 where it is not. Its TTLs are settled in place. */
  keep(client: Client, lane: Lane, key: Key, reply: FreshReply): number {
    const { behaviour, policy, cache, now } = this.#parts;
    const seconds = settleLifetime(reply, policy.cache, lane.isDoor ? behaviour.ttlSeconds : undefined);
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
  keepFailure(client: Client, key: Key, why: Uint8Array | undefined, wasSilent: boolean): void {
    const { behaviour, cache, now } = this.#parts;
    const entry = behaviour.caches ? cache.put(key, this.#owners.of(client), undefined, why) : undefined;
    if (entry === undefined) return;
    const nowMs = now();
    entry.failureUntilMs = nowMs + (wasSilent ? LIMITS.failureSilentMs : LIMITS.failureToldMs);
    entry.failedUntilMs = Math.max(entry.failureUntilMs, entry.hasReply ? nowMs + LIMITS.staleForMs : 0);
  }

  /** A reply that is over, for those who wait for servers that are late or have failed. */
  standIn(key: Key, lane: Lane): SharedReply | undefined {
    const { cache, memory, now } = this.#parts;
    const entry = cache.find(key);
    if (entry === undefined || !memory.mayStandIn(entry, lane, now())) return undefined;
    const stale = entry.copyReply();
    // Whoever asks from now on need not find out anew that servers are silent.
    if (stale !== undefined) entry.failedUntilMs = Math.max(entry.failedUntilMs, now() + LIMITS.staleForMs);
    return stale;
  }

  /** One who waited was handed such a reply. */
  noteStale(): void {
    this.#parts.memory.noteStale();
  }

  /** What is kept is asked for anew; nobody else is to do the same meanwhile. */
  beginRefresh(entry: Entry): void {
    this.#parts.cache.counts.prefetches++;
    entry.isRefreshing = true;
  }

  endRefresh(key: Key): void {
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
