// Proves what is read from the records of a message, and which messages can be parsed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Records, isReadable } from "../../../../src/query/wire/records.ts";
import { TYPE, aPointer, aQuery, aRecord, aReplyTo, anOpt } from "../../../support/scripted/builders.ts";

test("a record with invalid data makes the message invalid", () => {
  for (const [bytes, isGood] of [
    [4, true],
    [3, false],
  ] as const) {
    const record = aRecord({ type: TYPE.A, data: Buffer.alloc(bytes) });
    assert.equal(isReadable(aReplyTo(aQuery(), 0, [record]), new Records()), isGood);
  }
});

test("walk() reads the OPT: size, version, DNSSEC, number of OPTs", () => {
  const records = new Records();
  const message = aQuery({ opt: { udpSize: 4096, version: 3, isDnssecOk: true }, additionals: [anOpt()] });
  const start = 12 + 5 + 4;
  assert.equal(records.walk(message, 0, start, message.length, 2), message.length);
  const { count, optCount, optUdpSize, optVersion, isDnssecOk } = records;
  assert.deepEqual([count, optCount, optUdpSize, optVersion, isDnssecOk], [2, 2, 4096, 3, true]);
});

test("walk() counts the records that are there if the message ends before the announced number", () => {
  const records = new Records();
  const message = Buffer.concat([aRecord({ type: TYPE.A }), aRecord({ type: TYPE.A })]);
  assert.equal(records.walk(message, 0, 0, message.length, 65_535), message.length);
  assert.equal(records.count, 2);
});

test("walk() ignores what is after the announced number", () => {
  const records = new Records();
  const record = aRecord({ type: TYPE.A });
  assert.equal(records.walk(Buffer.concat([record, Buffer.of(0xff)]), 0, 0, record.length + 1, 1), record.length);
});

test("isReadable() rejects an incomplete header, and accepts a bare one", () => {
  const reply = aReplyTo(aQuery());
  assert.equal(isReadable(reply.subarray(0, 11), new Records()), false);
  assert.equal(isReadable(aQuery({ counts: [0, 0, 0, 0] }).subarray(0, 12), new Records()), true);
});

test("isReadable() accepts a reply with records in every section, and with trailing bytes", () => {
  const record = aRecord({ owner: aPointer(12), type: TYPE.A, data: Buffer.alloc(4) });
  const message = aQuery({ flags: 0x8180, answers: [record, record], authorities: [record], opt: {} });
  assert.equal(isReadable(message, new Records()), true);
  assert.equal(isReadable(Buffer.concat([message, Buffer.alloc(3)]), new Records()), true);
});

test("isReadable() rejects a reply that is cut anywhere but between two records", () => {
  const record = aRecord({ owner: aPointer(12), type: TYPE.A, data: Buffer.alloc(4) });
  const message = aReplyTo(aQuery(), 0, [record, record]);
  const questionEnd = 12 + 5 + 4;
  const whole = new Set([questionEnd, questionEnd + record.length]);
  for (let length = questionEnd; length < message.length; length++) {
    assert.equal(isReadable(message.subarray(0, length), new Records()), whole.has(length), `${length} octets`);
  }
});
