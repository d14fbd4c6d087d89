/**
 * Zone: an estimate of the zone that a queried name is in, as a number: a hash of its last two labels. Names that share them
 * may have the same authoritative servers, so their failures say nothing about the server that was asked.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { FOLD, LABEL_BYTES_MAX } from "../../base/dns/name.ts";
import { HASH_BASIS, hashByte } from "../../base/model/label-table.ts";

/** Names with fewer than two labels are all in the root zone. */
const ROOT = 0;

/** `message` is a query with one question, its name not compressed; or other bytes, with the labels of a name at `start`. */
export function zoneOf(message: Uint8Array, start: number = HEADER_BYTES): number {
  let at = start;
  let last = 0;
  let before = 0;
  for (;;) {
    const length = message[at] ?? 0;
    if (length === 0 || length > LABEL_BYTES_MAX) break;
    before = last;
    last = at;
    at += length + 1;
  }
  if (before === 0) return ROOT;
  let hash = HASH_BASIS;
  for (let i = before; i < at; i++) hash = hashByte(hash, FOLD[message[i] ?? 0] as number);
  return hash >>> 0;
}
