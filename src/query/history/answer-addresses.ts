/**
 * AnswerAddresses: finds the first addresses of an answer for the query history, because people ask where a name led, and the
 * reply is gone when they do. It runs on the query path, so it allocates nothing.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { POINTER, POINTER_BYTES } from "../../base/dns/name.ts";
import { DATA_LENGTH_AT, QUESTION_FIXED_BYTES, RECORD_FIXED_BYTES } from "../../base/dns/record.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import type { Outcome } from "../record/outcome.ts";

/** Addresses per query: a name with more is rare, and a record of the history has to stay short. */
const ADDRESSES_MAX = 2;
/** Records that are looked at: addresses may be behind a chain of aliases. */
const RECORDS_MAX = 8;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

/** The most addresses, and records, that are looked at for anyone. */
export const FOUND_MAX = 256;
/** The offsets in the reply of the addresses that were found last. */
export const addressAt = new Uint32Array(FOUND_MAX);

/** The length of an address in answers of this type; 0 for other types. */
export function addressSize(type: number): number {
  return type === TYPE.A ? IPV4_BYTES : type === TYPE.AAAA ? IPV6_BYTES : 0;
}

/** Finds the first addresses of the answer, up to FOUND_MAX, and returns their number. */
export function findAddresses(outcome: Outcome, addressesMax = ADDRESSES_MAX, recordsMax = RECORDS_MAX): number {
  const { reply, type, nameEnd } = outcome;
  const size = addressSize(type);
  if (size === 0 || nameEnd === 0) return 0;
  const end = outcome.at + outcome.length;
  let at = nameEnd + QUESTION_FIXED_BYTES;
  let count = 0;
  for (let left = Math.min(outcome.answers, recordsMax); left > 0 && count < addressesMax; left--) {
    // Most owners are a pointer to the question.
    const fixed = at < end && (reply[at] as number) >= POINTER ? at + POINTER_BYTES : ownerEnd(reply, at, end);
    const data = fixed + RECORD_FIXED_BYTES;
    if (data > end) break;
    const length = u16(reply, fixed + DATA_LENGTH_AT);
    at = data + length;
    if (at > end) break;
    if (length === size && u16(reply, fixed) === type) addressAt[count++] = data;
  }
  return count;
}

function ownerEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const length = bytes[at] as number;
    if (length === 0) return at + 1;
    if (length >= POINTER) return at + POINTER_BYTES;
    at += length + 1;
  }
  return end;
}
