// Proves how names are skipped, and which ones are invalid.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { resetNameSteps, skipName } from "../../../../src/query/wire/name.ts";
import { Records, isReadable } from "../../../../src/query/wire/records.ts";
import { TYPE, aName, aPointer, aQuery, aRecord, aReplyTo } from "../../../support/scripted/builders.ts";

// Each message has its own limit, and earlier tests may have used it up.
beforeEach(() => resetNameSteps(1_000));

test("skipName() returns the offset after a name or after its first pointer", () => {
  assert.equal(skipName(aName("a.bc"), 0, 0, 6), 6);
  const compressed = Buffer.concat([aName("bc"), Buffer.from("\x01a"), aPointer(0), Buffer.of(9)]);
  assert.equal(skipName(compressed, 0, 4, compressed.length), 8);
});

test("skipName() resolves pointers from the start of the message", () => {
  const bytes = Buffer.concat([Buffer.alloc(7, 0xff), aName("bc"), aPointer(0)]);
  assert.equal(skipName(bytes, 7, 11, bytes.length), 13);
});

test("skipName() follows a chain of 126 pointers and gives up at 127", () => {
  for (const [links, isGood] of [
    [126, true],
    [127, false],
  ] as const) {
    const chain = Buffer.concat([Buffer.of(0, 0), ...Array.from({ length: links }, (_, index) => aPointer(index * 2))]);
    assert.equal(skipName(chain, 0, links * 2, chain.length), isGood ? chain.length : -1);
  }
});

test("skipName() rejects names of over 255 octets however they are composed", () => {
  const label = Buffer.from(`\x3f${"a".repeat(63)}`);
  const end = Buffer.concat([Buffer.from(`\x3e${"a".repeat(62)}`), Buffer.of(0)]);
  const bytes = Buffer.concat([end, label, label, label, aPointer(0)]);
  assert.equal(skipName(bytes, 0, end.length, bytes.length), -1);
  assert.equal(skipName(bytes, 0, end.length + 64, bytes.length), bytes.length);
});

test("skipName() rejects labels of the reserved kinds, and incomplete names", () => {
  for (const bytes of [
    Buffer.of(0x40),
    Buffer.of(0x80, 0),
    Buffer.of(0xc0),
    Buffer.of(2, 1),
    Buffer.of(1, 1),
    Buffer.alloc(0),
  ]) {
    assert.equal(skipName(bytes, 0, 0, bytes.length), -1, bytes.toString("hex"));
  }
});

test("skipName() rejects a pointer after the end, even if memory continues there", () => {
  const bytes = Buffer.concat([aPointer(2), aName("a")]);
  assert.equal(skipName(bytes, 0, 0, bytes.length), 2);
  assert.equal(skipName(bytes, 0, 0, 2), -1);
});

test("the names of one message have a limit of steps; each message has its own", () => {
  // Four steps: three labels and the end.
  const name = aName("a.b.c");
  const names = LIMITS.nameStepsPerByte / 4;
  for (let message = 0; message < 2; message++) {
    resetNameSteps(1);
    for (let count = 0; count < names; count++) assert.equal(skipName(name, 0, 0, name.length), name.length);
    assert.equal(skipName(name, 0, 0, name.length), -1);
  }
});

test("a message of long names only, all of them compressed, can be read", () => {
  // NS records of an IPv6 reverse zone: owner and data of 34 labels each, in two octets each.
  const zone = `${"f.".repeat(32)}ip6.arpa`;
  const record = aRecord({ owner: aPointer(12), type: TYPE.NS, data: aPointer(12) });
  const answers = Array.from({ length: 100 }, () => record);
  assert.equal(isReadable(aReplyTo(aQuery({ name: zone, type: TYPE.NS }), 0, answers), new Records()), true);
});
