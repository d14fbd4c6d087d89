// Proves which data are valid for the type of a record.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isDataValid } from "../../../../src/query/wire/data.ts";
import { resetNameSteps } from "../../../../src/query/wire/name.ts";
import { TYPE, aName, aPointer, u16 } from "../../../support/scripted/builders.ts";

const NAME = aName("ns.example");
const NUMBERS = Buffer.alloc(20);
const START = 9;
const AT = START + 12;

// Type, data, and whether the data are valid.
const DATA: Readonly<Record<string, readonly [number, readonly (Buffer | string)[], boolean]>> = {
  "A of four octets": [TYPE.A, [Buffer.alloc(4)], true],
  "A of three octets": [TYPE.A, [Buffer.alloc(3)], false],
  "A of five octets": [TYPE.A, [Buffer.alloc(5)], false],
  "A without data": [TYPE.A, [], true],
  "AAAA of sixteen octets": [TYPE.AAAA, [Buffer.alloc(16)], true],
  "AAAA of four octets": [TYPE.AAAA, [Buffer.alloc(4)], false],
  "NS of a name": [TYPE.NS, [NAME], true],
  "CNAME of a name and an octet more": [TYPE.CNAME, [NAME, "\0"], false],
  "PTR of a name without its end": [TYPE.PTR, [NAME.subarray(0, -1)], false],
  "DNAME of a pointer to the message's first name": [TYPE.DNAME, [aPointer(0)], true],
  "CNAME of a pointer to itself": [TYPE.CNAME, [aPointer(AT - START)], false],
  "CNAME of a pointer after the end": [TYPE.CNAME, [aPointer(0x3fff)], false],
  "MX of a preference and a name": [TYPE.MX, [u16(10), NAME], true],
  "MX of a preference alone": [TYPE.MX, [u16(10)], true],
  "MX of one octet": [TYPE.MX, ["\x01"], false],
  "SRV of three numbers and a name": [TYPE.SRV, [u16(1), u16(2), u16(3), NAME], true],
  "SRV of two numbers": [TYPE.SRV, [u16(1), u16(2)], true],
  "SRV of two and a half numbers": [TYPE.SRV, [u16(1), u16(2), "\x03"], false],
  "SOA of two names and five numbers": [TYPE.SOA, [NAME, NAME, NUMBERS], true],
  "SOA that is one octet short": [TYPE.SOA, [NAME, NAME, NUMBERS.subarray(1)], false],
  "SOA that is one octet long": [TYPE.SOA, [NAME, NAME, NUMBERS, "\0"], false],
  "SOA of one name": [TYPE.SOA, [NAME], true],
  "TXT of two strings": [TYPE.TXT, ["\x01a\x02bc"], true],
  "TXT of an empty string": [TYPE.TXT, ["\0"], true],
  "TXT of a string that is cut": [TYPE.TXT, ["\x02a"], false],
  "SPF of a string that is cut": [TYPE.SPF, ["\x02a"], false],
  "HINFO of two strings": [13, ["\x01a\x01b"], true],
  "HINFO of three strings": [13, ["\x01a\x01b\x01c"], false],
  "NSEC of a name and a bitmap": [47, [NAME, "\x00\x01\x40\x01\x01\x80"], true],
  "NSEC of a bitmap whose blocks fall": [47, [NAME, "\x01\x01\x40\x00\x01\x80"], false],
  "NSEC of an empty block": [47, [NAME, "\0\0"], false],
  "NSEC of a block of 33 octets": [47, [NAME, "\x00\x21", Buffer.alloc(33)], false],
  "NSEC of half a block's head": [47, [NAME, "\0"], false],
  "RRSIG of its numbers, a name and a signature": [46, [Buffer.alloc(18), NAME, Buffer.alloc(7)], true],
  "RRSIG of seventeen octets": [46, [Buffer.alloc(17)], false],
  "DS of its numbers and a digest": [43, [Buffer.alloc(4), Buffer.alloc(20)], true],
  "DS of one octet": [43, ["\x01"], false],
  "DS of three octets": [43, [Buffer.alloc(3)], true],
  "HIP of nothing but heads": [55, [Buffer.alloc(4)], true],
  "HIP of a tag, a key and two servers": [55, ["\x01\x01\x00\x02", "t", "ke", NAME, NAME], true],
  "HIP whose tag is cut": [55, ["\x05\x01\0\0", "t"], false],
  "APL of a prefix": [42, [u16(1), "\x18\x03", Buffer.of(192, 0, 2)], true],
  "APL of 33 bits of IPv4": [42, [u16(1), "\x21\x04", Buffer.of(192, 0, 2, 1)], false],
  "APL that ends with a zero": [42, [u16(1), "\x18\x03", Buffer.of(192, 0, 0)], false],
  "APL of no family": [42, [u16(3), "\0\0"], false],
  "HTTPS of a priority, a name and a port": [TYPE.HTTPS, [u16(1), NAME, u16(3), u16(2), u16(443)], true],
  "HTTPS of a broken parameter": [TYPE.HTTPS, [u16(1), NAME, u16(3), u16(1), "\x01"], false],
  "OPT of a broken option": [TYPE.OPT, [u16(11), u16(1), "\0"], false],
  "AMTRELAY of an IPv4 relay": [260, ["\x01\x01", Buffer.alloc(4)], true],
  "AMTRELAY of an IPv4 relay that is cut": [260, ["\x01\x01", Buffer.alloc(3)], false],
  "AMTRELAY of a name": [260, ["\x01\x03", NAME], true],
  "an unknown type": [65_280, [Buffer.alloc(7, 0xff)], true],
};

for (const [what, [type, parts, isGood]] of Object.entries(DATA)) {
  test(`${what} ${isGood ? "is" : "is not"} valid`, () => {
    const data = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)));
    // In a message that does not start at offset 0 and whose first name is the root, with trailing bytes.
    const bytes = Buffer.concat([Buffer.alloc(START, 0xff), Buffer.alloc(AT - START), data]);
    // What another file of this process has read may have left no steps.
    resetNameSteps(bytes.length);
    assert.equal(isDataValid(type, Buffer.concat([bytes, NAME]), START, AT, bytes.length), isGood);
  });
}
