/**
 * Key: what a reply is found by: the question, and the list of servers that it was asked of.
 */
import { hashByte } from "../../base/model/label-table.ts";

/** What it is beside the name: DO and CD change what is in a reply (RFC 4035, 3.2). */
interface KeyFields {
  /** Over the name and everything below. */
  readonly hash: number;
  readonly type: number;
  readonly bits: number;
  readonly scope: number;
}

export interface CacheKey extends KeyFields {
  /** Lower-case wire labels, a character a byte: it may wait for long, and a text is the least object that bytes can be. */
  readonly name: string;
}

/** A key whose name still lies where it was read; its first `length` bytes count. */
export interface LookupKey extends KeyFields {
  readonly name: Uint8Array;
  readonly length: number;
}

/** Keeps the hash within a small integer, which a Map holds without a box. */
const SMALL = 0x3fffffff;

/** The hash of a key; `nameHash` is that of the name alone. */
export function keyHash(nameHash: number, type: number, bits: number, scope: number): number {
  let hash = hashByte(hashByte(nameHash, type & 0xff), type >> 8);
  hash = hashByte(hash, bits);
  hash = hashByte(hashByte(hash, scope & 0xffff), scope >>> 16);
  return hash & SMALL;
}

export function isSameKey(one: CacheKey, other: CacheKey): boolean {
  return one.type === other.type && one.bits === other.bits && one.scope === other.scope && one.name === other.name;
}
