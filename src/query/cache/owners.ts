/**
 * CacheOwners: which container the cache entries are charged to. When a container is detached, entries that only it
 * could use are removed, and the others are charged to no container.
 */
import type { Client } from "../client/client.ts";
import { type CacheOwner, type ReplyCache, newCacheOwner } from "./reply-cache.ts";

export class CacheOwners {
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
