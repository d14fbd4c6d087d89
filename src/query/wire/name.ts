/**
 * A name in a message, passed over: where it ends, if it is one at all.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { LABEL_BYTES_MAX, NAME_BYTES_MAX, POINTER, POINTER_BYTES, pointerTarget } from "../../base/dns/name.ts";
import { LIMITS } from "../../base/limits.ts";

/** As many as a name of 255 octets can need; more is a loop. */
const POINTERS_MAX = 126;

/** What is left of the steps that the names of the message at hand may take. */
let stepsLeft = 0x3fffffff;

/** Whether a pointer must lead back, as RFC 1035 has it; Docker's library follows it anywhere. */
let isStrict = false;

/** Comes before the names of another message, which has so many bytes. */
export function resetNameSteps(messageBytes: number, strict = false): void {
  stepsLeft = messageBytes * LIMITS.nameStepsPerByte;
  isStrict = strict;
}

/** Whether the names that were read would have been allowed in a message that is only so long. */
export function hasNameSteps(messageBytes: number, readBytes: number): boolean {
  return stepsLeft >= (readBytes - messageBytes) * LIMITS.nameStepsPerByte;
}

/** The offset behind the name at `at`, or -1. Compressed names are followed, because a broken one breaks the message. */
export function skipName(bytes: Uint8Array, start: number, at: number, end: number): number {
  let next = -1;
  let length = 0;
  let pointers = 0;
  let cursor = at;
  /** Where the labels begin that are being read, and must end: a strict pointer leads to a name in front of them. */
  let segment = at;
  let limit = end;
  for (;;) {
    if (cursor >= limit || --stepsLeft < 0) return -1;
    const byte = bytes[cursor] as number;
    if (byte === 0) return next === -1 ? cursor + 1 : next;
    if (byte <= LABEL_BYTES_MAX) {
      length += byte + 1;
      cursor += byte + 1;
      if (cursor > limit || length > NAME_BYTES_MAX) return -1;
    } else if (byte >= POINTER) {
      if (cursor + 1 >= limit || ++pointers > POINTERS_MAX) return -1;
      if (next === -1) next = cursor + POINTER_BYTES;
      const target = pointerTarget(bytes, cursor);
      cursor = start + target;
      if (isStrict) {
        if (target < HEADER_BYTES || cursor >= segment) return -1;
        limit = segment;
        segment = cursor;
      }
    } else {
      return -1;
    }
  }
}
