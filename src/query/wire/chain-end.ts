/**
 * ChainEnd: the addresses of an answer whose CNAMEs leave no room for one of them. A client that cannot ask again over TCP, such as musl
 * before 1.2.4, would get names only, so the addresses are given to the name in the question. The reply stays truncated: a client that asks
 * again over TCP gets everything, and nobody may cache this reply.
 */
import { setU16, u16, copyBytes } from "../../base/dns/bytes.ts";
import { AD, CODES_AT, setTruncated, writeCounts } from "../../base/dns/header.ts";
import { POINTER_BYTES } from "../../base/dns/name.ts";
import { QUESTION_FIXED_BYTES, QUESTION_POINTER, RECORD_FIXED_BYTES, writeRecord } from "../../base/dns/record.ts";
import { TYPE } from "../../base/dns/record-type.ts";

/** How long the data of an address are; 0 for other types. */
export function addressBytesOf(type: number): 0 | 4 | 16 {
  return type === TYPE.A ? 4 : type === TYPE.AAAA ? 16 : 0;
}

/** The type that the question of a message asks for. */
export function questionType(message: Uint8Array, questionEnd: number): number {
  return u16(message, questionEnd - QUESTION_FIXED_BYTES);
}

export interface ChainEnd {
  /** Where the question of the written message ends, from its start. */
  readonly questionEnd: number;
  readonly type: number;
  /** No longer than any record on the way. */
  readonly ttlSeconds: number;
  /** Where the addresses are in `bytes`, at least one. */
  readonly bytes: Uint8Array;
  readonly addresses: readonly number[];
  /** For the whole message. */
  readonly room: number;
}

/** Writes as many as fit after the question at `offset`, another one first each time. Returns the length of the message. */
export function writeChainEnd(
  block: Buffer,
  offset: number,
  { questionEnd, type, ttlSeconds, bytes, addresses, room }: ChainEnd,
): number {
  const size = addressBytesOf(type);
  const fitting = Math.floor((room - questionEnd) / (POINTER_BYTES + RECORD_FIXED_BYTES + size));
  const written = Math.min(addresses.length, fitting);
  const rotation = Math.floor(Math.random() * addresses.length);
  let at = offset + questionEnd;
  for (let i = 0; i < written; i++) {
    setU16(block, at, QUESTION_POINTER);
    at = writeRecord(block, at + POINTER_BYTES, type, ttlSeconds, size);
    const from = addresses[(i + rotation) % addresses.length] as number;
    copyBytes(bytes, from, from + size, block, at);
    at += size;
  }
  writeCounts(block, offset, written, 0, 0);
  setTruncated(block, offset);
  // No server has validated these records.
  block[offset + CODES_AT] = (block[offset + CODES_AT] as number) & ~AD;
  return at - offset;
}

/** Whether `writeChainEnd` wrote the message, so that it is not the server's records in their order. */
export function isChainEnd(block: Uint8Array, offset: number, questionEnd: number, type: number): boolean {
  const at = offset + questionEnd;
  return u16(block, at) === QUESTION_POINTER && u16(block, at + POINTER_BYTES) === type;
}
