/**
 * LabelTable: a table keyed by wire labels. A query brings the bytes and their hash, computed while its name was
 * parsed, so a lookup allocates nothing and compares bytes once. Updates are in place and incremental: the container
 * that joins 9,999 others costs as much as the first one. Queries never see half an update, because both run on one
 * thread.
 */
import { randomBytes, randomInt } from "node:crypto";
import { sameBytes, folded } from "../dns/name.ts";
import type { QuestionName } from "./visible-names.ts";

/** The hash of an empty name. */
export const HASH_BASIS = randomInt(0x7fffffff);

/**
 * A word for each byte, random in each process. A client that knew the words could choose names that collide, and then one lookup compares
 * with thousands. A random basis alone is not enough: names that collide from one basis of FNV-1a also do from one in 256.
 */
const WORDS = Int32Array.from({ length: 256 }, () => randomBytes(4).readInt32LE());

/** Hashes byte by byte, so that parsing a name yields the hash of every leading part. */
export function hashByte(hash: number, byte: number): number {
  return hashNumber(hash, WORDS[byte] as number);
}

/** Hashes a number that no client chooses. */
export function hashNumber(hash: number, number: number): number {
  const product = Math.imul(hash ^ number, 0x01000193);
  // The low bits choose the slot of a table.
  return product ^ (product >>> 15);
}

export function hashOf(labels: Uint8Array): number {
  let hash = HASH_BASIS;
  for (const byte of labels) hash = hashByte(hash, byte);
  return hash;
}

interface Slot<V> {
  readonly key: Uint8Array;
  value: V;
  next: Slot<V> | undefined;
}

/** Keeps the hash a small integer, which a Map stores unboxed. */
const SMALL = 0x3fffffff;

export class LabelTable<V> {
  readonly #slots = new Map<number, Slot<V>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The value stored under the first `length` bytes of `key`. */
  find(key: Uint8Array, length: number, hash: number): V | undefined {
    let slot = this.#slots.get(hash & SMALL);
    while (slot !== undefined) {
      if (slot.key.length === length && sameBytes(slot.key, 0, key, 0, length)) return slot.value;
      slot = slot.next;
    }
    return undefined;
  }

  /** The table may change between two steps. */
  *entries(): Iterable<readonly [Uint8Array, V]> {
    for (const first of this.#slots.values())
      for (let slot: Slot<V> | undefined = first; slot !== undefined; slot = slot.next) yield [slot.key, slot.value];
  }

  get(key: Uint8Array): V | undefined {
    return this.find(key, key.length, hashOf(key));
  }

  set(key: Uint8Array, value: V): void {
    const hash = hashOf(key) & SMALL;
    const first = this.#slots.get(hash);
    for (let slot = first; slot !== undefined; slot = slot.next) {
      if (slot.key.length === key.length && sameBytes(slot.key, 0, key, 0, key.length)) {
        slot.value = value;
        return;
      }
    }
    this.#slots.set(hash, { key, value, next: first });
    this.#size++;
  }

  delete(key: Uint8Array): void {
    const hash = hashOf(key) & SMALL;
    let before: Slot<V> | undefined;
    for (let slot = this.#slots.get(hash); slot !== undefined; before = slot, slot = slot.next) {
      if (slot.key.length !== key.length || !sameBytes(slot.key, 0, key, 0, key.length)) continue;
      this.#size--;
      if (before !== undefined) before.next = slot.next;
      else if (slot.next !== undefined) this.#slots.set(hash, slot.next);
      else this.#slots.delete(hash);
      return;
    }
  }
}

/** A name that was known before the query, such as the target of a CNAME, in a form that is looked up like the name of a question. */
export class StoredName implements QuestionName {
  readonly folded: Uint8Array;
  readonly foldedLength: number;
  readonly labelCount: number;
  readonly lengthOf: Uint8Array;
  readonly hashOf: Int32Array;
  readonly spelled: Uint8Array;
  readonly spelledAt = 0;

  /** Wire labels, without the terminating zero. */
  constructor(labels: Uint8Array) {
    this.spelled = labels;
    this.folded = folded(labels);
    this.foldedLength = labels.length;
    const lengths = [0];
    const hashes = [HASH_BASIS];
    let hash = HASH_BASIS;
    for (let at = 0; at < labels.length;) {
      const end = at + 1 + (labels[at] as number);
      while (at < end) hash = hashByte(hash, this.folded[at++] as number);
      lengths.push(end);
      hashes.push(hash);
    }
    this.labelCount = lengths.length - 1;
    this.lengthOf = Uint8Array.from(lengths);
    this.hashOf = Int32Array.from(hashes);
  }
}
