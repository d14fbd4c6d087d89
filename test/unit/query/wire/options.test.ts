// Proves which EDNS options are validated, and what is valid.

import assert from "node:assert/strict";
import { test } from "node:test";

import { areOptionsValid } from "../../../../src/query/wire/data.ts";
import { aName, aPointer, u16 } from "../../../support/scripted/builders.ts";

// Code, data, and whether the option is valid.
const OPTIONS: Readonly<Record<string, readonly [number, Buffer, boolean]>> = {
  "long-lived query of 18 octets": [1, Buffer.alloc(18), true],
  "long-lived query of 17 octets": [1, Buffer.alloc(17), false],
  "update lease of four octets": [2, Buffer.alloc(4), true],
  "update lease of eight octets": [2, Buffer.alloc(8), true],
  "update lease of six octets": [2, Buffer.alloc(6), false],
  "name server id, empty": [3, Buffer.alloc(0), true],
  "client subnet of three octets": [8, Buffer.alloc(3), false],
  "client subnet of family 0 without bits": [8, Buffer.of(0, 0, 0, 0), true],
  "client subnet of family 0 with bits": [8, Buffer.of(0, 0, 1, 0), false],
  "client subnet of IPv4": [8, Buffer.of(0, 1, 24, 0, 192, 0, 2), true],
  "client subnet of 33 bits of IPv4": [8, Buffer.of(0, 1, 33, 0, 192, 0, 2, 1, 0), false],
  "client subnet whose answer has 33 bits of IPv4": [8, Buffer.of(0, 1, 24, 33, 192, 0, 2), false],
  "client subnet of 128 bits of IPv6": [8, Buffer.concat([Buffer.of(0, 2, 128, 0), Buffer.alloc(16)]), true],
  "client subnet of 129 bits of IPv6": [8, Buffer.concat([Buffer.of(0, 2, 129, 0), Buffer.alloc(17)]), false],
  "client subnet of family 3": [8, Buffer.of(0, 3, 0, 0), false],
  "expire of two octets": [9, Buffer.alloc(2), false],
  "expire, empty": [9, Buffer.alloc(0), true],
  "cookie of eight octets": [10, Buffer.alloc(8), true],
  "keepalive of two octets": [11, Buffer.alloc(2), true],
  "keepalive of one octet": [11, Buffer.alloc(1), false],
  padding: [12, Buffer.alloc(300), true],
  "extended error of one octet": [15, Buffer.alloc(1), false],
  "extended error with a text": [15, Buffer.from("\0\x16no"), true],
  "reporting channel of a name": [18, aName("errors.example"), true],
  "reporting channel without its end": [18, aName("errors.example").subarray(0, -1), false],
  "reporting channel that points to itself": [18, aPointer(0), false],
  "zone version of one octet": [19, Buffer.alloc(1), false],
  "zone version of two octets": [19, Buffer.alloc(2), true],
  "an unknown option": [65_001, Buffer.alloc(5, 0xff), true],
};

for (const [what, [code, data, isGood]] of Object.entries(OPTIONS)) {
  test(`${what} ${isGood ? "is" : "is not"} valid`, () => {
    assert.equal(isSane([option(10, Buffer.alloc(8)), option(code, data)]), isGood);
  });
}

test("an option that is longer than the data, or has half a header, is invalid", () => {
  assert.equal(isSane([Buffer.of(0, 10, 0, 9, 1)]), false);
  assert.equal(isSane([Buffer.of(0, 10, 0)]), false);
});

test("no options are valid", () => {
  assert.equal(isSane([]), true);
});

function option(code: number, data: Buffer): Buffer {
  return Buffer.concat([u16(code), u16(data.length), data]);
}

// In the middle of a message, with bytes after the options that are not part of them.
function isSane(options: readonly Buffer[]): boolean {
  const before = Buffer.alloc(7, 0xff);
  const bytes = Buffer.concat([before, ...options]);
  return areOptionsValid(Buffer.concat([bytes, Buffer.alloc(20)]), before.length, bytes.length);
}
