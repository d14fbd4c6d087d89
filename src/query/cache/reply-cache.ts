/**
 * ReplyCache: replies of servers, kept for as long as they live and a while longer. A reply belongs to the list of servers
 * that gave it (its scope), so that two containers with different servers never meet in it.
 *
 * It is bounded in bytes, and fair: what a reply takes is charged to the container that first asked for it, and when
 * there is no room, whoever has most makes it, with what was not asked for longest. So a container that asks for ever new
 * names throws out its own replies, not its neighbours'.
 */
import { hashByte } from "../../model/label-table.ts";
import type { StoredReply } from "../wire/stored-reply.ts";
import { type CacheCounts, newCacheCounts } from "./counts.ts";

/** What a reply is found by, beside the name: DO and CD change what is in it (RFC 4035, 3.2). */
interface Found {
  /** Over the name and everything below. */
  readonly hash: number;
  readonly type: number;
  readonly bits: number;
  readonly scope: number;
}

export interface Key extends Found {
  /** Lower-case wire labels, a character a byte, as the records of a reply are kept. */
  readonly name: string;
}

/** A key whose name still lies where it was read; its first `length` bytes count. */
export interface ReadKey extends Found {
  readonly name: Uint8Array;
  readonly length: number;
}

export interface Entry extends Key {
  /** The reply; undefined where servers only failed so far. */
  reply: StoredReply | undefined;
  /** Times are whole milliseconds: the engine holds those in the object itself. */
  storedMs: number;
  /** When it is over; it may stand in for failing servers after that. */
  expiresMs: number;
  /** Until then no server is asked again for it: all of them have just failed (RFC 9520). */
  failureUntilMs: number;
  /** Until then the reply that is over stands in at once, and servers are asked beside. */
  failedUntilMs: number;
  /** Why, as an extended error. */
  failure: Uint8Array | undefined;
  hits: number;
  /** It is being asked anew. */
  isRefreshing: boolean;
  bytes: number;
  owner: Owner;
  before: Entry | undefined;
  after: Entry | undefined;
}

/** One container's replies, the one that was asked for last at the end. */
export interface Owner {
  bytes: number;
  first: Entry | undefined;
  last: Entry | undefined;
}

/** Keeps the hash within a small integer, which a Map holds without a box. */
const SMALL = 0x3fffffff;
/** What an entry takes beside the bytes of its message, measured: objects, their places in the table, the TTLs' places. */
const ENTRY_BYTES = 600;

/** The hash of a key; `nameHash` is that of the name alone. */
export function keyHash(nameHash: number, type: number, bits: number, scope: number): number {
  let hash = hashByte(hashByte(nameHash, type & 0xff), type >> 8);
  hash = hashByte(hash, bits);
  hash = hashByte(hashByte(hash, scope & 0xffff), scope >>> 16);
  return hash & SMALL;
}

export class ReplyCache {
  readonly #entries = new Map<number, Entry>();
  readonly #owners = new Set<Owner>();
  readonly #bytesMax: number;
  readonly counts: CacheCounts;
  #bytes = 0;

  /** `counts` is where it is counted what had to make room. */
  constructor(bytesMax: number, counts: CacheCounts = newCacheCounts()) {
    this.#bytesMax = bytesMax;
    this.counts = counts;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  get size(): number {
    return this.#entries.size;
  }

  find(key: Key): Entry | undefined {
    const entry = this.#entries.get(key.hash);
    return entry !== undefined && isSameKey(entry, key) ? entry : undefined;
  }

  /** The same for a key that was just read: nothing is made to find it. */
  findRead(key: ReadKey): Entry | undefined {
    const entry = this.#entries.get(key.hash);
    return entry !== undefined && isAlike(entry, key) && isNamed(entry, key) ? entry : undefined;
  }

  /** It was asked for: the last to go. */
  touch(entry: Entry): void {
    if (entry.owner.last === entry) return;
    unlink(entry);
    link(entry, entry.owner);
  }

  /** The entry of a key, made where there is none. Of two keys with one hash the newer one is kept. */
  put(key: Key, owner: Owner, reply: StoredReply | undefined): Entry {
    let entry = this.find(key);
    if (entry === undefined) {
      const other = this.#entries.get(key.hash);
      if (other !== undefined) this.remove(other);
      entry = newEntry(key, owner);
      this.#entries.set(key.hash, entry);
      this.#owners.add(owner);
      link(entry, owner);
    } else {
      this.touch(entry);
    }
    if (reply !== undefined) entry.reply = reply;
    const bytes = ENTRY_BYTES + key.name.length + (entry.reply?.records.length ?? 0);
    this.#charge(entry, bytes - entry.bytes);
    entry.bytes = bytes;
    this.#makeRoom(entry);
    return entry;
  }

  remove(entry: Entry): void {
    if (this.#entries.get(entry.hash) !== entry) return;
    this.#entries.delete(entry.hash);
    this.#charge(entry, -entry.bytes);
    entry.bytes = 0;
    unlink(entry);
    if (entry.owner.first === undefined) this.#owners.delete(entry.owner);
  }

  /** Everything goes: what servers said before is no longer what they say. */
  clear(): void {
    this.#entries.clear();
    for (const owner of this.#owners) {
      owner.bytes = 0;
      owner.first = owner.last = undefined;
    }
    this.#owners.clear();
    this.#bytes = 0;
  }

  /** What is kept of one name, of whatever type and from whomever, or all; returns how much that was. */
  removeNamed(name: string | undefined): number {
    const before = this.size;
    if (name === undefined) {
      this.clear();
      return before;
    }
    for (const entry of this.#entries.values()) {
      if (entry.name === name) this.remove(entry);
    }
    return before - this.size;
  }

  /** A container has gone: what others may still want of what it asked for passes to `heir`, the rest goes. */
  inherit(owner: Owner, heir: Owner, isShared: (scope: number) => boolean): void {
    for (let entry = owner.first, next; entry !== undefined; entry = next) {
      next = entry.after;
      if (!isShared(entry.scope)) {
        this.remove(entry);
        continue;
      }
      this.#charge(entry, -entry.bytes);
      unlink(entry);
      entry.owner = heir;
      link(entry, heir);
      this.#charge(entry, entry.bytes);
      this.#owners.add(heir);
    }
    this.#owners.delete(owner);
  }

  #charge(entry: Entry, bytes: number): void {
    entry.owner.bytes += bytes;
    this.#bytes += bytes;
  }

  #makeRoom(newest: Entry): void {
    while (this.#bytes > this.#bytesMax) {
      const victim = this.#most(newest.owner).first;
      if (victim === undefined) return;
      this.counts.evictions++;
      this.remove(victim);
    }
  }

  /** Whoever has most; the asking one, where it has more than its share anyway. */
  #most(asking: Owner): Owner {
    if (asking.bytes > this.#bytesMax / this.#owners.size) return asking;
    let most = asking;
    for (const owner of this.#owners) if (owner.bytes > most.bytes) most = owner;
    return most;
  }
}

export function isSameKey(one: Key, other: Key): boolean {
  return isAlike(one, other) && one.name === other.name;
}

/** How many replies are charged to a container. */
export function entriesOf(owner: Owner): number {
  let count = 0;
  for (let entry = owner.first; entry !== undefined; entry = entry.after) count++;
  return count;
}

export function newOwner(): Owner {
  return { bytes: 0, first: undefined, last: undefined };
}

function newEntry({ hash, name, type, bits, scope }: Key, owner: Owner): Entry {
  return {
    hash,
    name,
    type,
    bits,
    scope,
    reply: undefined,
    storedMs: 0,
    expiresMs: 0,
    failureUntilMs: 0,
    failedUntilMs: 0,
    failure: undefined,
    hits: 0,
    isRefreshing: false,
    bytes: 0,
    owner,
    before: undefined,
    after: undefined,
  };
}

function isAlike(one: Found, other: Found): boolean {
  return one.type === other.type && one.bits === other.bits && one.scope === other.scope;
}

function isNamed({ name }: Entry, { name: bytes, length }: ReadKey): boolean {
  if (name.length !== length) return false;
  for (let i = 0; i < length; i++) if (name.charCodeAt(i) !== bytes[i]) return false;
  return true;
}

function link(entry: Entry, owner: Owner): void {
  entry.before = owner.last;
  entry.after = undefined;
  if (owner.last === undefined) owner.first = entry;
  else owner.last.after = entry;
  owner.last = entry;
}

function unlink(entry: Entry): void {
  const { owner, before, after } = entry;
  if (before === undefined) owner.first = after;
  else before.after = after;
  if (after === undefined) owner.last = before;
  else after.before = before;
  entry.before = entry.after = undefined;
}
