/**
 * CacheKey: what a reply is found by: the question, and the list of servers that it was sent to.
 */
import { hashByte, hashNumber } from "../../base/model/label-table.ts";

/** Everything but the name: DO and CD change what is in a reply (RFC 4035, 3.2). */
interface KeyFields {
  /** It is over the name and all fields below. */
  readonly hash: number;
  readonly type: number;
  readonly bits: number;
  readonly scope: number;
}

export interface CacheKey extends KeyFields {
  /**
   * Lower-case wire labels, one character per byte: a key may be held for long, and a string is the cheapest object for
   * bytes.
   */
  readonly name: string;
}

/** A key whose name is still in the query's buffer; its first `length` bytes count. */
export interface LookupKey extends KeyFields {
  readonly name: Uint8Array;
  readonly length: number;
}

/** Keeps the hash within a small integer, which a Map holds without a box. */
const SMALL = 0x3fffffff;

/** The hash of a key; `nameHash` is that of the name alone. */
export function keyHash(nameHash: number, type: number, bits: number, scope: number): number {
  let hash = hashByte(hashByte(nameHash, type & 0xff), type >> 8);
  hash = hashNumber(hashNumber(hash, bits), scope);
  return hash & SMALL;
}

export function isSameKey(one: CacheKey, other: CacheKey): boolean {
  return one.type === other.type && one.bits === other.bits && one.scope === other.scope && one.name === other.name;
}
