/**
 * Questions and records in a message, after the name that each begins with.
 */
import { HEADER_BYTES } from "./header.ts";
import { pointerTo } from "./name.ts";

/** A question has a type and a class after its name. */
export const QUESTION_FIXED_BYTES = 4;
/** The class is here after the name of a question or a record. */
export const CLASS_AT = 2;
/** A record has these after its owner name: type, class, TTL and data length; then its data follows. */
export const TTL_AT = 4;
export const DATA_LENGTH_AT = 8;
export const RECORD_FIXED_BYTES = 10;
/** The last field of an SOA: how long a negative answer may be cached. */
export const SOA_MINIMUM_BYTES = 4;
/** TTLs with the highest bit set count as 0 (RFC 2181, 8). */
const TTL_MAX = 0x7fffffff;

export const CLASS = { IN: 1, ANY: 255 } as const;

/** Writes the fields between a record's owner name and its data, in class IN; returns the offset of the data. */
export function writeRecord(bytes: Uint8Array, at: number, type: number, ttl: number, dataBytes: number): number {
  bytes[at] = type >> 8;
  bytes[at + 1] = type;
  bytes[at + 2] = 0;
  bytes[at + 3] = CLASS.IN;
  bytes[at + 4] = ttl >>> 24;
  bytes[at + 5] = ttl >>> 16;
  bytes[at + 6] = ttl >>> 8;
  bytes[at + 7] = ttl;
  bytes[at + 8] = dataBytes >> 8;
  bytes[at + 9] = dataBytes;
  return at + RECORD_FIXED_BYTES;
}

/** A compression pointer to the name of a message's only question. */
export const QUESTION_POINTER = pointerTo(HEADER_BYTES);

export function ttlOf(seconds: number): number {
  return seconds > TTL_MAX ? 0 : seconds;
}
