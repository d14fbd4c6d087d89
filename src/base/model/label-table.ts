/**
 * A table keyed by wire labels. A query brings the bytes and their hash, computed while its name was read, so a lookup
 * makes no object and compares bytes once. It is changed in place, by what changed: a container that joins 9,999 others
 * costs as much as the first one. Queries never see half a change, because both run on one thread.
 */
import { randomInt } from "node:crypto";

import { sameBytes } from "../dns/name.ts";

/**
 * FNV-1a, a label at a time, so that the hash of every leading part of a name falls out on the way. It begins with another
 * number in each process, so that nobody can prepare names that fall into one place.
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

/** Keeps the hash within a small integer, which a Map holds without a box. */
const SMALL = 0x3fffffff;

export class LabelTable<V> {
  readonly #slots = new Map<number, Slot<V>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** What is stored under the `length` bytes at the start of `key`. */
  find(key: Uint8Array, length: number, hash: number): V | undefined {
    let slot = this.#slots.get(hash & SMALL);
    while (slot !== undefined) {
      if (slot.key.length === length && sameBytes(slot.key, 0, key, 0, length)) return slot.value;
      slot = slot.next;
    }
    return undefined;
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
