/**
 * HopOptions: EDNS options between two neighbours only, such as a cookie, which is that of one client and one server (RFC 7873). The
 * client is the neighbour of dns11, and so is the server; so neither gets those of the other.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { SECTIONS, countAt } from "../../base/dns/header.ts";
import { OPTION, OPTION_FIXED_BYTES } from "../../base/dns/opt.ts";
import { resetNameSteps } from "./name.ts";
import { Records } from "./records.ts";

const HOP_BY_HOP = new Set<number>([OPTION.NSID, OPTION.COOKIE, OPTION.KEEPALIVE, OPTION.PADDING]);
const records = new Records();

/** Whether all options are. */
export function areOptionsHopByHop(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at + OPTION_FIXED_BYTES <= end; at += OPTION_FIXED_BYTES + u16(bytes, at + 2)) {
    if (!HOP_BY_HOP.has(u16(bytes, at))) return false;
  }
  return true;
}

/** A copy of a message without them. */
export function withoutHopByHop(message: Buffer, questionEnd: number): Buffer {
  let count = 0;
  for (let section = 0; section < SECTIONS; section++) count += u16(message, countAt(section));
  resetNameSteps(message.length);
  records.reset();
  if (records.walk(message, 0, questionEnd, message.length, count) === -1) return Buffer.from(message);
  const { optDataAt, optDataEnd } = records;
  const kept: Buffer[] = [];
  for (let at = optDataAt; at + OPTION_FIXED_BYTES <= optDataEnd;) {
    const end = at + OPTION_FIXED_BYTES + u16(message, at + 2);
    if (!HOP_BY_HOP.has(u16(message, at))) kept.push(message.subarray(at, end));
    at = end;
  }
  const shorter = Buffer.concat([message.subarray(0, optDataAt), ...kept, message.subarray(optDataEnd)]);
  if (optDataAt > 0) setU16(shorter, optDataAt - 2, optDataEnd - optDataAt - (message.length - shorter.length));
  return shorter;
}
