/**
 * LabelTable: a table keyed by wire labels. A query brings the bytes and their hash, computed while its name was
 * parsed, so a lookup allocates nothing and compares bytes once. Updates are in place and incremental: the container
 * that joins 9,999 others costs as much as the first one. Queries never see half an update, because both run on one
 * thread.
 */
import { randomInt } from "node:crypto";

import { sameBytes } from "../dns/name.ts";

/**
 * FNV-1a, label by label, so that parsing a name yields the hash of every leading part. The basis is random in each
 * process, so that names cannot be crafted to collide.
 */
export const HASH_BASIS = randomInt(0x7fffffff);

export function hashByte(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193);
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
