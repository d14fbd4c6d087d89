/**
 * Skips names in a message, and validates them.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { LABEL_BYTES_MAX, NAME_BYTES_MAX, POINTER, POINTER_BYTES, pointerTarget } from "../../base/dns/name.ts";
import { LIMITS } from "../../base/limits.ts";

/** As many as a name of 255 octets can need; more is a loop. */
const POINTERS_MAX = 126;

/** Remaining steps for the names of the current message. */
let stepsLeft = 0x3fffffff;

/** Whether a pointer must point backwards, as RFC 1035 requires; Docker's library follows any. */
let isStrict = false;

/** Call before reading the names of another message, with its length. */
export function resetNameSteps(messageBytes: number, strict = false): void {
  stepsLeft = messageBytes * LIMITS.nameStepsPerByte;
  isStrict = strict;
}

/** Whether the names that were read would also be within the limit for a shorter message. */
export function hasNameSteps(messageBytes: number, readBytes: number): boolean {
  return stepsLeft >= (readBytes - messageBytes) * LIMITS.nameStepsPerByte;
}

/**
 * The offset after the name at `at`, or -1. Compressed names are followed, because an invalid one makes the message
 * invalid.
 */
export function skipName(bytes: Uint8Array, start: number, at: number, end: number): number {
  let next = -1;
  let length = 0;
  let pointers = 0;
  let cursor = at;
  /**
   * Start of the current labels, which limits the target of the next pointer: a strict pointer points to a name before
   * them.
   */
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
