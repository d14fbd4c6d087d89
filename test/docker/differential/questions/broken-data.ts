// Malformed record data: truncated, too long, or with inconsistent inner lengths.

import { RECORDS } from "../raw-records.ts";
import { TYPE, hex } from "../octets.ts";

export type BrokenData = readonly [label: string, type: number, data: Buffer];

// For every well-formed record: without its last octet, with one more, its first half, and empty.
const DERIVED: readonly BrokenData[] = Object.entries(RECORDS).flatMap(([label, { type, data = Buffer.alloc(0) }]) => {
  if (data.length === 0) return [];
  return [
    [`${label} less one`, type, data.subarray(0, -1)] as const,
    [`${label} and one`, type, Buffer.concat([data, Buffer.of(0)])] as const,
    [`${label} half`, type, data.subarray(0, data.length >> 1)] as const,
    [`${label} empty`, type, Buffer.alloc(0)] as const,
  ];
});

export const BROKEN_DATA: readonly BrokenData[] = [
  ...DERIVED,
  ["nsec with an empty block", TYPE.NSEC, hex("00 00 00")],
  ["nsec with a block of 33", TYPE.NSEC, Buffer.concat([hex("00 00 21"), Buffer.alloc(33, 1)])],
  ["nsec with blocks out of order", TYPE.NSEC, hex("00 01 01 40 00 01 40")],
  ["svcb with keys out of order", TYPE.SVCB, hex("0001 00 0003 0002 01bb 0001 0003 02 6832")],
  ["svcb with a key twice", TYPE.SVCB, hex("0001 00 0003 0002 01bb 0003 0002 01bb")],
  ["svcb with an odd port", TYPE.SVCB, hex("0001 00 0003 0001 01")],
  ["svcb with an empty alpn", TYPE.SVCB, hex("0001 00 0001 0001 00")],
  ["svcb with 5 octets of address", TYPE.SVCB, hex("0001 00 0004 0005 c000020101")],
  ["svcb with no address", TYPE.SVCB, hex("0001 00 0004 0000")],
  ["caa without a tag", TYPE.CAA, hex("00 00 61")],
  ["apl of an unknown family", TYPE.APL, hex("0003 08 01 c0")],
  ["apl with trailing zeros", TYPE.APL, hex("0001 18 04 c0000200")],
  ["apl with a long prefix", TYPE.APL, hex("0001 21 01 c0")],
  ["loc of version 1", TYPE.LOC, hex("01 12 16 13 89 17 2d d0 70 be 15 f0 00 98 8d 20")],
  ["nsec3 with a long salt", TYPE.NSEC3, hex("01 00 0001 ff aabb")],
  ["hip", 55, hex("0004 02 0004 01020304 aabbccdd 00")],
  ["ipseckey", 45, hex("0a 01 02 c0000226 0102")],
  ["ipseckey of gateway 4", 45, hex("0a 04 02 c0000226 0102")],
  ["amtrelay", 260, hex("0a 01 c0000226")],
  ["gpos", 27, hex("01 31 01 32 01 33")],
  ["nxname", 128, hex("61")],
  ["tkey", TYPE.TKEY, hex("00 00000000 00000000 0003 0000 0000 0000")],
];
