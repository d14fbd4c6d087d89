// Proves which service parameters are valid.

import assert from "node:assert/strict";
import { test } from "node:test";

import { areParametersValid } from "../../../../src/query/wire/data.ts";
import { u16 } from "../../../support/scripted/builders.ts";

type Parameter = readonly [number, Buffer];

// Key, value, and whether the value is valid.
const VALUES: Readonly<Record<string, readonly [number, Buffer, boolean]>> = {
  "mandatory keys": [0, Buffer.of(0, 1, 0, 3), true],
  "half a mandatory key": [0, Buffer.of(0, 1, 0), false],
  "two protocols": [1, Buffer.from("\x02h2\x02h3"), true],
  "a protocol that is cut": [1, Buffer.from("\x03h2"), false],
  "no default protocol": [2, Buffer.alloc(0), true],
  "no default protocol, with a value": [2, Buffer.of(1), false],
  "a port": [3, u16(443), true],
  "a port of one octet": [3, Buffer.of(1), false],
  "two IPv4 hints": [4, Buffer.alloc(8), true],
  "no IPv4 hint": [4, Buffer.alloc(0), false],
  "an IPv4 hint of three octets": [4, Buffer.alloc(3), false],
  "a hello of anything": [5, Buffer.alloc(3), true],
  "an IPv6 hint": [6, Buffer.alloc(16), true],
  "an IPv6 hint of four octets": [6, Buffer.alloc(4), false],
  "oblivious HTTP": [8, Buffer.alloc(0), true],
  "oblivious HTTP, with a value": [8, Buffer.of(1), false],
  "an unknown key": [65_280, Buffer.alloc(3, 0xff), true],
  "the key that is reserved": [65_535, Buffer.alloc(0), false],
};

for (const [what, [key, value, isGood]] of Object.entries(VALUES)) {
  test(`${what} ${isGood ? "is" : "is not"} valid`, () => {
    assert.equal(isSane([[key, value]]), isGood);
  });
}

test("keys must ascend", () => {
  const [port, hint]: [Parameter, Parameter] = [
    [3, u16(443)],
    [4, Buffer.alloc(4)],
  ];
  assert.equal(isSane([port, hint]), true);
  assert.equal(isSane([hint, port]), false);
  assert.equal(isSane([port, port]), false);
});

test("an incomplete parameter is invalid, whatever follows in memory", () => {
  const whole = bytesOf([[3, u16(443)]]);
  for (let length = 1; length < whole.length; length++) {
    assert.equal(areParametersValid(Buffer.concat([whole, Buffer.alloc(9)]), 0, length), false, `${length} octets`);
  }
});

test("no parameters are valid", () => {
  assert.equal(isSane([]), true);
});

function isSane(parameters: readonly Parameter[]): boolean {
  const bytes = bytesOf(parameters);
  return areParametersValid(Buffer.concat([Buffer.alloc(5, 0xff), bytes]), 5, 5 + bytes.length);
}

function bytesOf(parameters: readonly Parameter[]): Buffer {
  return Buffer.concat(parameters.flatMap(([key, value]) => [u16(key), u16(value.length), value]));
}
