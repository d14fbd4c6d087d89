/**
 * Owners: whom each container's replies in the cache are charged to. What a container asked for is its own as long as it is
 * there; what others may want of it stays when it goes, and is nobody's then.
 */
import type { Client } from "../client/client.ts";
import { type CacheOwner, type ReplyCache, newCacheOwner } from "./reply-cache.ts";

export class CacheOwners {
  readonly #cache: ReplyCache;
  readonly #isShared: (scope: number) => boolean;
  readonly #heir = newCacheOwner();
  readonly #owners = new WeakMap<Client, CacheOwner>();

  constructor(cache: ReplyCache, isShared: (scope: number) => boolean) {
    this.#cache = cache;
    this.#isShared = isShared;
  }

  /** Of a container, where anything was kept for it; of nobody: of those that are gone. */
  known(client: Client | undefined): CacheOwner | undefined {
    return client === undefined ? this.#heir : this.#owners.get(client);
  }

  of(client: Client): CacheOwner {
    if (client.isClosed) return this.#heir;
    const known = this.#owners.get(client);
    if (known !== undefined) return known;
    const owner = newCacheOwner();
    this.#owners.set(client, owner);
    // A container may outlive these owners, whom other settings have replaced, and is not to keep them alive.
    const self = new WeakRef(this);
    client.atClose(() => {
      const owners = self.deref();
      if (owners !== undefined) owners.#bequeath(owner);
    });
    return owner;
  }

  #bequeath(owner: CacheOwner): void {
    this.#cache.transfer(owner, this.#heir, this.#isShared);
  }
}
