/**
 * ReplyCache: replies of servers, kept for as long as they live and a while longer. A reply belongs to the list of servers
 * that gave it (its scope), so that two containers with different servers never meet in it.
 *
 * It is bounded in bytes, and fair: what a reply takes is charged to the container that first asked for it, and when
 * there is no room, whoever has most makes it, with what was not asked for longest. So a container that asks for ever new
 * names throws out its own replies, not its neighbours'.
 */
import { NAME_BYTES_MAX } from "../../base/dns/name.ts";
import { Fault } from "../../base/lib/fault.ts";
import { CELL_COST, cellsFor } from "../../base/lib/cells.ts";
import type { SharedReply } from "../wire/shared-reply.ts";
import { type CacheCounts, newCacheCounts } from "../record/cache-counts.ts";
import { COLUMNS_COST, Columns, EntryDraft, CacheEntry } from "./entry.ts";
import type { CacheKey, LookupKey } from "./key.ts";

/** One container's replies, the one that was asked for last at the end. */
export interface CacheOwner {
  bytes: number;
  entries: number;
  first: number;
  last: number;
  /** Its place among those that have any; undefined as long as it has none. */
  number: number | undefined;
}

/** The place that is nobody's. */
const NONE = 0;
/** What a place has here: neighbours in its row and in the order of its owner, its owner, and what that is charged for it. */
const LINKS_COST = 5 * Int32Array.BYTES_PER_ELEMENT;
/** There are as many rows as places, or up to twice as many. */
const ROW_COST = 2 * Int32Array.BYTES_PER_ELEMENT;
const ENTRY_COST = COLUMNS_COST + LINKS_COST + ROW_COST;
/** What most need: a name with an address or two, or with the SOA of a denial. */
const CELLS_EXPECTED = 2;
const MIB = 2 ** 20;

export class ReplyCache {
  /** What all places and cells take together, each once it was used. */
  readonly bytesMax: number;
  readonly #placesMax: number;
  readonly counts: CacheCounts;
  readonly #columns: Columns;
  /** The first place of each row; the hash of a key says which row is its own. */
  readonly #rows: Int32Array;
  /** The next place in the same row, and of places that are free. */
  readonly #beside: Int32Array;
  readonly #before: Int32Array;
  readonly #after: Int32Array;
  readonly #ownerOf: Int32Array;
  readonly #bytesOf: Int32Array;
  readonly #owners = new Set<CacheOwner>();
  readonly #byNumber: (CacheOwner | undefined)[] = [];
  readonly #draft = new EntryDraft();
  readonly #name = Buffer.allocUnsafeSlow(NAME_BYTES_MAX);
  /** Nothing is made to look at what a query asks for. */
  readonly #read: CacheEntry;
  #firstFree = NONE;
  #neverUsed = NONE + 1;
  #bytes = 0;
  #size = 0;

  /** `counts` is where it is counted what had to make room. */
  constructor(bytesMax: number, counts: CacheCounts = newCacheCounts()) {
    this.bytesMax = bytesMax;
    this.counts = counts;
    this.#placesMax = Math.floor(bytesMax / (ENTRY_COST + CELLS_EXPECTED * CELL_COST));
    const places = this.#placesMax + 1;
    try {
      this.#columns = new Columns(places, this.#placesMax * CELLS_EXPECTED);
      this.#rows = new Int32Array(2 ** Math.ceil(Math.log2(places)));
      this.#beside = new Int32Array(places);
      this.#before = new Int32Array(places);
      this.#after = new Int32Array(places);
      this.#ownerOf = new Int32Array(places);
      this.#bytesOf = new Int32Array(places);
    } catch (error) {
      throw new Fault("NO_ROOM", `The machine has no room for a cache of ${Math.round(bytesMax / MIB)} MiB`, {
        remedy: "Choose a smaller cache.size in the settings.",
        cause: error,
      });
    }
    this.#read = new CacheEntry(this.#columns);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#size;
  }

  find({ name, hash, type, bits, scope }: CacheKey): CacheEntry | undefined {
    const length = this.#name.write(name, "latin1");
    const entry = this.lookUp({ name: this.#name, length, hash, type, bits, scope });
    return entry === undefined ? undefined : this.#look(entry.row);
  }

  /** The same for a key that was just read. What is found is good until anything else is done here. */
  lookUp(key: LookupKey): CacheEntry | undefined {
    const entry = this.#read;
    for (let place = this.#rows[this.#row(key.hash)] as number; place !== NONE; place = this.#beside[place] as number) {
      if (entry.at(place).isOf(key)) return entry;
    }
    return undefined;
  }

  /** It was asked for: the last to go. */
  touch({ row: place }: CacheEntry): void {
    const owner = this.#owner(place);
    if (owner.last === place) return;
    this.#unlink(place, owner);
    this.#link(place, owner);
  }

  /**
   * Keeps a reply; or why servers failed, beside the reply of before. Returns undefined for one that is larger than all that
   * may be kept.
   */
  put(key: CacheKey, asking: CacheOwner, reply: SharedReply | undefined, failure?: Uint8Array): CacheEntry | undefined {
    const known = this.find(key);
    const content = reply ?? known?.reply;
    this.#draft.compose(key, content, failure);
    // Rather the reply alone than neither.
    if (!this.#couldHold(this.#draft)) this.#draft.compose(key, content, undefined);
    const owner = known === undefined ? asking : this.#owner(known.row);
    if (known !== undefined) this.#takeOut(known.row, owner);
    if (!this.#couldHold(this.#draft)) {
      if (known !== undefined) this.#giveBack(known.row);
      this.#dismiss(owner);
      return undefined;
    }
    const cells = cellsFor(this.#draft.length);
    const bytes = ENTRY_COST + cells * CELL_COST;
    this.#makeRoom(owner, bytes, cells, known === undefined ? 1 : 0);
    const entry = known ?? this.#look(this.#newPlace(key.hash));
    this.#columns.fill(entry.row, key, this.#draft);
    this.#putIn(entry.row, owner, bytes);
    return entry;
  }

  /** Everything goes: what servers said before is no longer what they say. */
  clear(): void {
    for (const owner of this.#owners) {
      this.#forEach(owner, (place) => (this.#rows[this.#row(this.#read.at(place).hash)] = NONE));
      Object.assign(owner, newCacheOwner());
    }
    this.#owners.clear();
    this.#byNumber.length = 0;
    this.#columns.clear();
    this.#firstFree = NONE;
    this.#neverUsed = NONE + 1;
    this.#bytes = this.#size = 0;
  }

  /** What is kept of one name, of whatever type and from whomever, or all; returns how much that was. */
  removeNamed(name: string | undefined): number {
    const before = this.size;
    if (name === undefined) this.clear();
    else {
      const bytes = Buffer.from(name, "latin1");
      for (const owner of this.#owners) {
        this.#forEach(owner, (place) => {
          if (this.#look(place).isNamed(bytes, bytes.length)) this.#remove(place);
        });
      }
    }
    return before - this.size;
  }

  /** A container has gone: what others may still want of what it asked for passes to `heir`, the rest goes. */
  transfer(owner: CacheOwner, heir: CacheOwner, isShared: (scope: number) => boolean): void {
    this.#forEach(owner, (place) => {
      if (!isShared(this.#look(place).scope)) return this.#remove(place);
      const bytes = this.#bytesOf[place] as number;
      this.#takeOff(place, owner);
      this.#putIn(place, heir, bytes);
    });
    this.#dismiss(owner);
  }

  #look(place: number): CacheEntry {
    return new CacheEntry(this.#columns).at(place);
  }

  #row(hash: number): number {
    return hash & (this.#rows.length - 1);
  }

  #owner(place: number): CacheOwner {
    return this.#byNumber[this.#ownerOf[place] as number] as CacheOwner;
  }

  /** What is done with one may remove it. */
  #forEach(owner: CacheOwner, act: (place: number) => void): void {
    for (let place = owner.first, next; place !== NONE; place = next) {
      next = this.#after[place] as number;
      act(place);
    }
  }

  #couldHold({ length }: EntryDraft): boolean {
    return cellsFor(length) <= this.#columns.cells.count && this.#placesMax > 0;
  }

  #makeRoom(asking: CacheOwner, bytes: number, cells: number, places: number): void {
    // Who asks counts as one of those who share, before it has anything.
    this.#enrol(asking);
    while (this.#columns.cells.available < cells || this.#size + places > this.#placesMax) {
      this.counts.evictions++;
      this.#remove(this.#most(asking, bytes).first);
    }
  }

  /** Whoever has most; the asking one, where it would have more than its share anyway. */
  #most(asking: CacheOwner, bytes: number): CacheOwner {
    if (asking.entries > 0 && asking.bytes + bytes > this.bytesMax / this.#owners.size) return asking;
    let most = asking;
    for (const owner of this.#owners) if (owner.bytes > most.bytes) most = owner;
    return most;
  }

  #remove(place: number): void {
    const owner = this.#owner(place);
    this.#takeOut(place, owner);
    this.#giveBack(place);
    this.#dismiss(owner);
  }

  /** What a place keeps goes; the place itself stays for what comes instead. */
  #takeOut(place: number, owner: CacheOwner): void {
    this.#columns.empty(place);
    this.#takeOff(place, owner);
  }

  #takeOff(place: number, owner: CacheOwner): void {
    this.#unlink(place, owner);
    owner.bytes -= this.#bytesOf[place] as number;
    this.#bytes -= this.#bytesOf[place] as number;
    owner.entries--;
  }

  #putIn(place: number, owner: CacheOwner, bytes: number): void {
    this.#ownerOf[place] = this.#enrol(owner);
    this.#bytesOf[place] = bytes;
    this.#link(place, owner);
    owner.bytes += bytes;
    this.#bytes += bytes;
    owner.entries++;
  }

  #newPlace(hash: number): number {
    let place = this.#firstFree;
    if (place === NONE) place = this.#neverUsed++;
    else this.#firstFree = this.#beside[place] as number;
    const row = this.#row(hash);
    this.#columns.begin(place);
    this.#beside[place] = this.#rows[row] as number;
    this.#rows[row] = place;
    this.#size++;
    return place;
  }

  #giveBack(place: number): void {
    const row = this.#row(this.#look(place).hash);
    const next = this.#beside[place] as number;
    if (this.#rows[row] === place) this.#rows[row] = next;
    else {
      let before = this.#rows[row] as number;
      while (this.#beside[before] !== place) before = this.#beside[before] as number;
      this.#beside[before] = next;
    }
    this.#beside[place] = this.#firstFree;
    this.#firstFree = place;
    this.#size--;
  }

  #enrol(owner: CacheOwner): number {
    if (owner.number !== undefined) return owner.number;
    const free = this.#byNumber.indexOf(undefined);
    owner.number = free === -1 ? this.#byNumber.length : free;
    this.#byNumber[owner.number] = owner;
    this.#owners.add(owner);
    return owner.number;
  }

  /** One that has nothing left has no share. */
  #dismiss(owner: CacheOwner): void {
    if (owner.entries > 0 || owner.number === undefined) return;
    this.#byNumber[owner.number] = undefined;
    owner.number = undefined;
    this.#owners.delete(owner);
  }

  #link(place: number, owner: CacheOwner): void {
    this.#before[place] = owner.last;
    this.#after[place] = NONE;
    if (owner.last === NONE) owner.first = place;
    else this.#after[owner.last] = place;
    owner.last = place;
  }

  #unlink(place: number, owner: CacheOwner): void {
    const before = this.#before[place] as number;
    const after = this.#after[place] as number;
    if (before === NONE) owner.first = after;
    else this.#after[before] = after;
    if (after === NONE) owner.last = before;
    else this.#before[after] = before;
  }
}

export function newCacheOwner(): CacheOwner {
  return { bytes: 0, entries: 0, first: NONE, last: NONE, number: undefined };
}
