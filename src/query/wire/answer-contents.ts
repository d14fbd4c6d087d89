/**
 * AnswerContents: what a reply tells a client to go to: addresses, those in hints of services among them, and the targets of
 * aliases. All sections count, because clients use what they find.
 */
import { u16, u32 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, SECTIONS, countAt } from "../../base/dns/header.ts";
import { POINTER, pointerTarget } from "../../base/dns/name.ts";
import { DATA_LENGTH_AT, QUESTION_FIXED_BYTES, RECORD_FIXED_BYTES, TTL_AT } from "../../base/dns/record.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { resetNameSteps, skipName } from "./name.ts";

const IPV4_HINT = 4;
const IPV6_HINT = 6;
const PRIORITY_BYTES = 2;
const PARAMETER_FIXED_BYTES = 4;

/** Each returns false if there are too many. */
export interface ContentsVisitor {
  /** Four or sixteen bytes, valid until it returns, and for how long clients keep them. */
  readonly address: (bytes: Uint8Array, ttlSeconds: number) => boolean;
  /** The labels of the name that an alias leads to, without the terminating zero. */
  readonly target: (labels: Uint8Array) => boolean;
}

/** Whether the whole reply could be read, and had no more than the visitor wanted. */
export function visitContents(reply: Uint8Array, visitor: ContentsVisitor): boolean {
  const end = reply.length;
  resetNameSteps(end);
  const nameEnd = skipName(reply, 0, HEADER_BYTES, end);
  let at = nameEnd + QUESTION_FIXED_BYTES;
  if (nameEnd === -1 || at > end) return false;
  for (let section = 0; section < SECTIONS; section++) {
    // A truncated reply may announce more than it has.
    for (let left = u16(reply, countAt(section)); left > 0 && at < end; left--) {
      const fixed = skipName(reply, 0, at, end);
      const data = fixed + RECORD_FIXED_BYTES;
      if (fixed === -1 || data > end) return false;
      at = data + u16(reply, fixed + DATA_LENGTH_AT);
      if (at > end || !visitRecord(reply, fixed, data, at, visitor)) return false;
    }
  }
  return true;
}

function visitRecord(reply: Uint8Array, fixed: number, data: number, end: number, visitor: ContentsVisitor): boolean {
  const type = u16(reply, fixed);
  switch (type) {
    case TYPE.A:
    case TYPE.AAAA: {
      if (end - data !== (type === TYPE.A ? 4 : 16)) return false;
      return visitor.address(reply.subarray(data, end), u32(reply, fixed + TTL_AT));
    }
    case TYPE.CNAME:
    case TYPE.DNAME: {
      if (skipName(reply, 0, data, end) === -1) return false;
      return visitor.target(labelsAt(reply, data));
    }
    case TYPE.HTTPS:
    case TYPE.SVCB:
      return visitHints(reply, data, end, u32(reply, fixed + TTL_AT), visitor);
    default:
      return true;
  }
}

function visitHints(
  reply: Uint8Array,
  data: number,
  end: number,
  ttlSeconds: number,
  visitor: ContentsVisitor,
): boolean {
  let at = skipName(reply, 0, data + PRIORITY_BYTES, end);
  if (at === -1) return false;
  while (at < end) {
    const value = at + PARAMETER_FIXED_BYTES;
    if (value > end) return false;
    const key = u16(reply, at);
    at = value + u16(reply, at + 2);
    if (at > end) return false;
    const size = key === IPV4_HINT ? 4 : key === IPV6_HINT ? 16 : 0;
    if (size === 0) continue;
    for (let each = value; each + size <= at; each += size)
      if (!visitor.address(reply.subarray(each, each + size), ttlSeconds)) return false;
  }
  return true;
}

/** A name that can be read. */
function labelsAt(reply: Uint8Array, start: number): Uint8Array {
  const labels: Uint8Array[] = [];
  for (let at = start; ;) {
    const size = reply[at] as number;
    if (size === 0) return Buffer.concat(labels);
    if (size >= POINTER) {
      at = pointerTarget(reply, at);
      continue;
    }
    labels.push(reply.subarray(at, at + 1 + size));
    at += 1 + size;
  }
}
