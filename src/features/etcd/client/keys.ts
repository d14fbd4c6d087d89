import { inSlices } from "../../../base/lib/slices.ts";
import { ETCD_LIMITS } from "../limits.ts";
import { ETCD_TOO_LARGE, isEtcdFault, noEtcdFault } from "./faults.ts";
import type { Calls } from "./gateway.ts";
import { encoded, type Page, readPage, type StoredKey } from "./messages.ts";

/** The first key after this one. */
export function nextKey(key: string): string {
  return `${key}\0`;
}

/** The first key after all that begin with this text, which is not empty. */
export function endOf(prefix: string): string {
  const last = prefix.charCodeAt(prefix.length - 1);
  return prefix.slice(0, -1) + String.fromCharCode(last + 1);
}

/** Receives what is below a prefix of the store, and every change of it. */
export interface StoredKeys {
  /**
   * Says where a list that has more keys goes on after this one: keys that there is no room for are not read.
   * undefined: nowhere.
   */
  after(key: string): string | undefined;
  /** A complete list follows; until it has ended, what was known stays. */
  begin(): void;
  /** The list has ended: keys that were not in it are gone. */
  commit(): void;
  put(stored: StoredKey): void;
  remove(key: string): void;
  /** How long this lease was granted for. */
  setLease(lease: string, ttlSeconds: number): void;
}

/**
 * Reads all keys below a prefix as they are at one revision, page by page. A page has as many keys as fit into a reply; a value that
 * fits into none is reported as missing. Whoever receives the keys decides which are read. Returns the revision of the list. Throws a
 * Fault; what was put until then is not committed.
 */
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
  #keysMax: number = ETCD_LIMITS.pageKeys;
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
        this.#keysMax = Math.min(ETCD_LIMITS.pageKeys, 2 * this.#keysMax);
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
