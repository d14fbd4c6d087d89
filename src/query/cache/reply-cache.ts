/**
 * ReplyCache: upstream replies, kept until they expire and, to be served stale, a while longer. A reply belongs to the
 * list of servers that gave it (its scope), so containers with different servers never share entries.
 *
 * The cache is bounded in bytes and fair: an entry is charged to the container that queried it first, and when the
 * cache is full, the largest user's least recently used entry is evicted. So a container that queries ever new names
 * evicts its own entries, not those of others.
 */
import { NAME_BYTES_MAX } from "../../base/dns/name.ts";
import { Fault } from "../../base/lib/fault.ts";
import { mayAllocate } from "../../kernel/libc.ts";
import { CELL_COST, cellsFor } from "./cells.ts";
import type { SharedReply } from "../wire/shared-reply.ts";
import { type CacheCounts, newCacheCounts } from "../record/meter.ts";
import { COLUMNS_COST, Columns, EntryDraft, CacheEntry, type CacheKey, type LookupKey } from "./entry.ts";

/** The entries of one container as a list, the most recently used last. */
export interface CacheOwner {
  bytes: number;
  entries: number;
  first: number;
  last: number;
  /** Index in the list of owners; undefined as long as it has no entries. */
  number: number | undefined;
}

/** An entry, the container that it is charged to, and the bytes charged. */
interface StoredEntry {
  readonly entry: CacheEntry;
  readonly owner: CacheOwner;
  readonly bytes: number;
}

/** Row 0 is never used. */
const NONE = 0;
/** Bytes per row for links: next in the bucket, previous and next of the owner, the owner, and the bytes charged. */
const LINKS_COST = 5 * Int32Array.BYTES_PER_ELEMENT;
/** There are at least as many buckets as rows, and at most twice as many. */
const BUCKETS_COST = 2 * Int32Array.BYTES_PER_ELEMENT;
const ENTRY_COST = COLUMNS_COST + LINKS_COST + BUCKETS_COST;
/** The cells that most entries need: for a name with an address or two, or with the SOA of a negative answer. */
const CELLS_EXPECTED = 2;
const MIB = 2 ** 20;

export class ReplyCache {
  /** Memory of all rows and cells once they have been used. */
  readonly bytesMax: number;
  readonly #rowsMax: number;
  readonly counts: CacheCounts;
  readonly #columns: Columns;
  /** The first row of each bucket; the hash of a key selects the bucket. */
  readonly #buckets: Int32Array;
  /** The next row in the same bucket, or in the list of free rows. */
  readonly #nextInBucket: Int32Array;
  readonly #previous: Int32Array;
  readonly #following: Int32Array;
  readonly #ownerOf: Int32Array;
  readonly #bytesOf: Int32Array;
  readonly #owners = new Set<CacheOwner>();
  readonly #byNumber: (CacheOwner | undefined)[] = [];
  readonly #draft = new EntryDraft();
  readonly #onForgotten: () => void;
  readonly #name = Buffer.allocUnsafeSlow(NAME_BYTES_MAX);
  /** Reused for every lookup by a query: nothing is allocated. */
  readonly #lookupEntry: CacheEntry;
  #firstFree = NONE;
  #firstUnused = NONE + 1;
  #bytes = 0;
  #size = 0;

  /** `counts` receives the evictions. `onForgotten` is called when replies are removed that nobody is to get any more. */
  constructor(bytesMax: number, counts: CacheCounts = newCacheCounts(), onForgotten: () => void = () => undefined) {
    this.bytesMax = bytesMax;
    this.counts = counts;
    this.#onForgotten = onForgotten;
    this.#rowsMax = Math.floor(bytesMax / (ENTRY_COST + CELLS_EXPECTED * CELL_COST));
    const rows = this.#rowsMax + 1;
    try {
      // Arrays are allocated until one of them fails, and what is left may then be too little for V8, which ends the process.
      if (bytesMax > 0 && !mayAllocate(bytesMax)) throw new RangeError("the process may not have as much");
      this.#columns = new Columns(rows, this.#rowsMax * CELLS_EXPECTED);
      this.#buckets = new Int32Array(2 ** Math.ceil(Math.log2(rows)));
      this.#nextInBucket = new Int32Array(rows);
      this.#previous = new Int32Array(rows);
      this.#following = new Int32Array(rows);
      this.#ownerOf = new Int32Array(rows);
      this.#bytesOf = new Int32Array(rows);
    } catch (error) {
      throw new Fault("NO_ROOM", `Not enough memory for a cache of ${Math.round(bytesMax / MIB)} MiB`, {
        remedy: "Set a smaller cache.size.",
        cause: error,
      });
    }
    this.#lookupEntry = new CacheEntry(this.#columns);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#size;
  }

  /** The number of rows that have been used, from 1 on. */
  get rows(): number {
    return this.#firstUnused - 1;
  }

  /** The entry of a row, for lists; undefined if the row is free. */
  stored(row: number): StoredEntry | undefined {
    if (row < 1 || row > this.rows) return undefined;
    const entry = this.#entryAt(row);
    return entry.isStored ? { entry, owner: this.#ownerAt(row), bytes: this.#bytesOf[row] as number } : undefined;
  }

  find({ name, hash, type, bits, scope }: CacheKey): CacheEntry | undefined {
    const length = this.#name.write(name, "latin1");
    const entry = this.lookUp({ name: this.#name, length, hash, type, bits, scope });
    return entry === undefined ? undefined : this.#entryAt(entry.row);
  }

  /** Finds an entry by the bytes of a query. The result is valid until the next call of any method. */
  lookUp(key: LookupKey): CacheEntry | undefined {
    const entry = this.#lookupEntry;
    for (
      let row = this.#buckets[this.#bucket(key.hash)] as number;
      row !== NONE;
      row = this.#nextInBucket[row] as number
    ) {
      if (entry.at(row).isOf(key)) return entry;
    }
    return undefined;
  }

  /** Marks an entry as most recently used. */
  touch({ row }: CacheEntry): void {
    const owner = this.#ownerAt(row);
    if (owner.last === row) return;
    this.#unlink(row, owner);
    this.#link(row, owner);
  }

  /**
   * Stores a reply, or why servers failed beside the reply that is already there. Returns undefined if it is larger
   * than the whole cache.
   */
  put(
    key: CacheKey,
    requester: CacheOwner,
    reply: SharedReply | undefined,
    failure?: Uint8Array,
  ): CacheEntry | undefined {
    const existing = this.find(key);
    const content = reply ?? existing?.readReply();
    this.#draft.compose(key, content, failure);
    // If both do not fit, the reply is more useful.
    if (!this.#fits(this.#draft)) this.#draft.compose(key, content, undefined);
    const owner = existing === undefined ? requester : this.#ownerAt(existing.row);
    if (existing !== undefined) this.#clearRow(existing.row, owner);
    if (!this.#fits(this.#draft)) {
      if (existing !== undefined) this.#freeRow(existing.row);
      this.#unregisterIfEmpty(owner);
      return undefined;
    }
    const cells = cellsFor(this.#draft.length);
    const bytes = ENTRY_COST + cells * CELL_COST;
    this.#makeRoom(owner, bytes, cells, existing === undefined ? 1 : 0);
    const entry = existing ?? this.#entryAt(this.#allocateRow(key.hash));
    this.#columns.write(entry.row, key, this.#draft);
    this.#charge(entry.row, owner, bytes);
    return entry;
  }

  /** Removes all entries: earlier replies are no longer valid. */
  clear(): void {
    for (const owner of this.#owners) {
      this.#forEach(owner, (row) => (this.#buckets[this.#bucket(this.#lookupEntry.at(row).hash)] = NONE));
      Object.assign(owner, newCacheOwner());
    }
    this.#owners.clear();
    this.#byNumber.length = 0;
    this.#columns.clear();
    this.#firstFree = NONE;
    this.#firstUnused = NONE + 1;
    this.#bytes = this.#size = 0;
    this.#onForgotten();
  }

  /** Removes the entries of one name, of all types and servers, or all; returns how many. */
  removeNamed(name: string | undefined): number {
    const before = this.size;
    if (name === undefined) this.clear();
    else {
      const bytes = Buffer.from(name, "latin1");
      for (const owner of this.#owners) {
        this.#forEach(owner, (row) => {
          if (this.#entryAt(row).isNamed(bytes, bytes.length)) this.#remove(row);
        });
      }
      this.#onForgotten();
    }
    return before - this.size;
  }

  /** A container was detached: entries that others can use are charged to `newOwner`, the rest is removed. */
  transfer(owner: CacheOwner, newOwner: CacheOwner, isShared: (scope: number) => boolean): void {
    this.#forEach(owner, (row) => {
      if (!isShared(this.#entryAt(row).scope)) return this.#remove(row);
      const bytes = this.#bytesOf[row] as number;
      this.#uncharge(row, owner);
      this.#charge(row, newOwner, bytes);
    });
    this.#unregisterIfEmpty(owner);
  }

  #entryAt(row: number): CacheEntry {
    return new CacheEntry(this.#columns).at(row);
  }

  #bucket(hash: number): number {
    return hash & (this.#buckets.length - 1);
  }

  #ownerAt(row: number): CacheOwner {
    return this.#byNumber[this.#ownerOf[row] as number] as CacheOwner;
  }

  /** `act` may remove the row. */
  #forEach(owner: CacheOwner, act: (row: number) => void): void {
    for (let row = owner.first, next; row !== NONE; row = next) {
      next = this.#following[row] as number;
      act(row);
    }
  }

  #fits({ length }: EntryDraft): boolean {
    return cellsFor(length) <= this.#columns.cells.count && this.#rowsMax > 0;
  }

  #makeRoom(requester: CacheOwner, bytes: number, cells: number, rows: number): void {
    // A new owner counts as one that shares the cache before it has anything.
    this.#register(requester);
    while (this.#columns.cells.available < cells || this.#size + rows > this.#rowsMax) {
      this.counts.evictions++;
      this.#remove(this.#nextVictim(requester, bytes).first);
    }
  }

  /** The owner to evict from: the largest, or the requester if it would exceed its share anyway. */
  #nextVictim(requester: CacheOwner, bytes: number): CacheOwner {
    if (requester.entries > 0 && requester.bytes + bytes > this.bytesMax / this.#owners.size) return requester;
    let most = requester;
    for (const owner of this.#owners) if (owner.bytes > most.bytes) most = owner;
    return most;
  }

  #remove(row: number): void {
    const owner = this.#ownerAt(row);
    this.#clearRow(row, owner);
    this.#freeRow(row);
    this.#unregisterIfEmpty(owner);
  }

  /** Frees the content of a row; the row itself stays for new content. */
  #clearRow(row: number, owner: CacheOwner): void {
    this.#columns.free(row);
    this.#uncharge(row, owner);
  }

  #uncharge(row: number, owner: CacheOwner): void {
    this.#unlink(row, owner);
    owner.bytes -= this.#bytesOf[row] as number;
    this.#bytes -= this.#bytesOf[row] as number;
    owner.entries--;
  }

  #charge(row: number, owner: CacheOwner, bytes: number): void {
    this.#ownerOf[row] = this.#register(owner);
    this.#bytesOf[row] = bytes;
    this.#link(row, owner);
    owner.bytes += bytes;
    this.#bytes += bytes;
    owner.entries++;
  }

  #allocateRow(hash: number): number {
    let row = this.#firstFree;
    if (row === NONE) row = this.#firstUnused++;
    else this.#firstFree = this.#nextInBucket[row] as number;
    const bucket = this.#bucket(hash);
    this.#columns.reset(row);
    this.#nextInBucket[row] = this.#buckets[bucket] as number;
    this.#buckets[bucket] = row;
    this.#size++;
    return row;
  }

  #freeRow(row: number): void {
    const bucket = this.#bucket(this.#entryAt(row).hash);
    const next = this.#nextInBucket[row] as number;
    if (this.#buckets[bucket] === row) this.#buckets[bucket] = next;
    else {
      let previous = this.#buckets[bucket] as number;
      while (this.#nextInBucket[previous] !== row) previous = this.#nextInBucket[previous] as number;
      this.#nextInBucket[previous] = next;
    }
    this.#nextInBucket[row] = this.#firstFree;
    this.#firstFree = row;
    this.#size--;
  }

  #register(owner: CacheOwner): number {
    if (owner.number !== undefined) return owner.number;
    const free = this.#byNumber.indexOf(undefined);
    owner.number = free === -1 ? this.#byNumber.length : free;
    this.#byNumber[owner.number] = owner;
    this.#owners.add(owner);
    return owner.number;
  }

  /** An owner without entries has no share. */
  #unregisterIfEmpty(owner: CacheOwner): void {
    if (owner.entries > 0 || owner.number === undefined) return;
    this.#byNumber[owner.number] = undefined;
    owner.number = undefined;
    this.#owners.delete(owner);
  }

  #link(row: number, owner: CacheOwner): void {
    this.#previous[row] = owner.last;
    this.#following[row] = NONE;
    if (owner.last === NONE) owner.first = row;
    else this.#following[owner.last] = row;
    owner.last = row;
  }

  #unlink(row: number, owner: CacheOwner): void {
    const before = this.#previous[row] as number;
    const after = this.#following[row] as number;
    if (before === NONE) owner.first = after;
    else this.#following[before] = after;
    if (after === NONE) owner.last = before;
    else this.#previous[after] = before;
  }
}

export function newCacheOwner(): CacheOwner {
  return { bytes: 0, entries: 0, first: NONE, last: NONE, number: undefined };
}
