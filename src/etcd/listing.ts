/**
 * Listing: reads all keys below a prefix as they are at one revision, page by page. A page has as many keys as fit into
 * a reply; a value that fits into none is reported as missing. Whoever receives the keys decides which are read.
 */
import { inSlices } from "../base/lib/slices.ts";
import { LIMITS } from "../base/limits.ts";
import { type StoredKeys, endOf } from "../base/model/stored-key.ts";
import { ETCD_TOO_LARGE, isEtcdFault, noEtcdFault } from "./etcd-fault.ts";
import type { Calls } from "./publish/lease.ts";
import { type Page, encoded, readPage } from "./messages.ts";

/** Returns the revision of the list. Throws a Fault; what was put until then is not committed. */
export async function list(gateway: Calls, prefix: string, keys: StoredKeys, signal: AbortSignal): Promise<number> {
  const listing = new Listing(gateway, prefix, signal);
  keys.begin();
  const end = endOf(prefix);
  let next: string | undefined = prefix;
  while (next !== undefined && next < end) {
    const page: Page = await listing.page(next);
    const last = page.keys.at(-1);
    // The same page could follow for ever.
    if (last !== undefined && last.key < next) throw noEtcdFault("has keys before the first one");
    await inSlices(putting(keys, page.keys));
    next = page.hasMore && last !== undefined ? keys.after(last.key) : undefined;
  }
  keys.commit();
  return listing.revision;
}

/** A page of names takes longer to put than to read. */
function* putting(keys: StoredKeys, page: Page["keys"]): Generator<void> {
  for (const stored of page) yield keys.put(stored);
}

class Listing {
  readonly #gateway: Calls;
  readonly #end: string;
  readonly #signal: AbortSignal;
  #keysMax: number = LIMITS.etcdPageKeys;
  revision = 0;

  constructor(gateway: Calls, prefix: string, signal: AbortSignal) {
    this.#gateway = gateway;
    this.#end = encoded(endOf(prefix));
    this.#signal = signal;
  }

  async page(from: string): Promise<Page> {
    for (;;) {
      try {
        const page = await this.#read(from, { limit: this.#keysMax });
        this.#keysMax = Math.min(LIMITS.etcdPageKeys, 2 * this.#keysMax);
        return page;
      } catch (error) {
        if (!isEtcdFault(error, ETCD_TOO_LARGE)) throw error;
        if (this.#keysMax === 1) return await this.#keyOnly(from);
        this.#keysMax = Math.ceil(this.#keysMax / SHRINK);
      }
    }
  }

  async #keyOnly(from: string): Promise<Page> {
    const page = await this.#read(from, { limit: 1, keys_only: true });
    return { ...page, keys: page.keys.map((each) => ({ ...each, value: undefined })) };
  }

  /** All pages are of the revision of the first one. */
  async #read(from: string, more: object): Promise<Page> {
    const revision = this.revision === 0 ? {} : { revision: String(this.revision) };
    const body = { key: encoded(from), range_end: this.#end, ...revision, ...more };
    const page = readPage(await this.#gateway.call("/v3/kv/range", body, this.#signal));
    // Any server may reply with JSON. Taken for an empty list, it would deny every name.
    if (page.revision === 0) throw noEtcdFault("has no revision");
    if (this.revision === 0) this.revision = page.revision;
    return page;
  }
}

const SHRINK = 8;
