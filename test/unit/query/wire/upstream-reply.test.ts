// Proves what is passed on of an upstream reply.

import assert from "node:assert/strict";
import { test } from "node:test";

import { readReply } from "../../../../src/query/wire/scrub.ts";
import { TYPE, aPointer, aQuery, aRecord, aReplyTo, anOpt, u16 } from "../../../support/scripted/builders.ts";

const QUERY = aQuery({ name: "example.org" });
const ADDRESS = aRecord({ owner: "example.org", type: TYPE.A, data: Buffer.of(192, 0, 2, 1) });
const MESSAGE_BYTES_MAX = 65_535;

test("a valid reply is passed on unchanged", () => {
  const reply = aReplyTo(QUERY, 3, [ADDRESS]);
  assert.deepEqual(readReply(Buffer.from(reply)), { message: reply, rcode: 3, isSigned: false });
});

test("an unreadable reply is rejected", () => {
  for (const broken of [Buffer.alloc(0), QUERY.subarray(0, 11), aReplyTo(QUERY, 0, [ADDRESS]).subarray(0, -1)]) {
    assert.equal(readReply(Buffer.from(broken)), undefined);
  }
});

test("trailing bytes are removed", () => {
  const reply = aReplyTo(QUERY, 0, [ADDRESS]);
  assert.deepEqual(readReply(Buffer.concat([reply, Buffer.alloc(9, 1)]))?.message, reply);
});

test("a reply that ends between two records gets the count of those that are there", () => {
  const whole = aReplyTo(QUERY, 0, [ADDRESS, ADDRESS]);
  assert.deepEqual(readReply(whole.subarray(0, whole.length - ADDRESS.length))?.message, aReplyTo(QUERY, 0, [ADDRESS]));
});

test("a bare header has no question and no record, whatever its counts say", () => {
  const header = aQuery({ flags: 0x8185, counts: [1, 2, 3, 4] }).subarray(0, 12);
  assert.deepEqual(readReply(Buffer.from(header)), {
    message: aQuery({ flags: 0x8185, counts: [0, 0, 0, 0] }).subarray(0, 12),
    rcode: 5,
    isSigned: false,
  });
});

test("a missing type and class become zero", () => {
  for (const typeAndClass of [Buffer.alloc(0), u16(TYPE.TXT)]) {
    const reply = aQuery({ flags: 0x8180, typeAndClass });
    const type = typeAndClass.length === 0 ? 0 : TYPE.TXT;
    assert.deepEqual(readReply(Buffer.from(reply))?.message, aQuery({ flags: 0x8180, type, class: 0 }));
  }
});

test("an incomplete type or class makes the reply unreadable", () => {
  for (const typeAndClass of [Buffer.of(0), Buffer.of(0, 1, 0)]) {
    assert.equal(readReply(aQuery({ flags: 0x8180, typeAndClass })), undefined);
  }
});

test("the rcode has the upper bits from an OPT in the additional section, and no other", () => {
  const opt = anOpt({});
  opt[5] = 1;
  assert.equal(readReply(aQuery({ flags: 0x8180, additionals: [opt] }))?.rcode, 16);
  assert.equal(readReply(aQuery({ flags: 0x8183, additionals: [opt] }))?.rcode, 19);
  assert.equal(readReply(aQuery({ flags: 0x8183, answers: [opt] }))?.rcode, 3);
});

test("a reply that would exceed a message when it is completed is rejected", () => {
  // Questions for the root until the message is full to the last octet; the last one ends after its type.
  const count = Math.floor((MESSAGE_BYTES_MAX - 12) / 5);
  const head = aQuery({ flags: 0x8180, counts: [count + 1, 0, 0, 0] }).subarray(0, 12);
  const message = Buffer.concat([head, Buffer.alloc(count * 5), Buffer.alloc(3)]);
  assert.equal(message.length, MESSAGE_BYTES_MAX);
  assert.equal(readReply(message), undefined);
  const fits = Buffer.concat([
    aQuery({ flags: 0x8180, counts: [count, 0, 0, 0] }).subarray(0, 12),
    Buffer.alloc(count * 5 - 2),
  ]);
  assert.equal(readReply(fits)?.message.length, fits.length + 2);
});

test("strict: pointers point backwards, data are complete and the counts are correct", () => {
  // The next record's owner, after the question and 16 octets of this one.
  const forward = aRecord({ owner: aPointer(QUERY.length + 16), type: TYPE.A, data: Buffer.of(192, 0, 2, 1) });
  const broken = [
    aReplyTo(QUERY, 0, [forward, ADDRESS]),
    aReplyTo(QUERY, 0, [aRecord({ owner: aPointer(4), type: TYPE.A, data: Buffer.alloc(4) })]),
    aReplyTo(QUERY, 0, [aRecord({ owner: "example.org", type: TYPE.A })]),
    aReplyTo(QUERY, 0, [aRecord({ owner: "example.org", type: TYPE.MX, data: u16(10) })]),
    aReplyTo(QUERY, 0, [ADDRESS, ADDRESS]).subarray(0, -ADDRESS.length),
  ];
  for (const reply of broken) {
    assert.ok(readReply(Buffer.from(reply)), `Docker reads ${reply.toString("hex")}`);
    assert.equal(readReply(Buffer.from(reply), true), undefined);
  }
});

test("strict: a truncated reply may have wrong counts", () => {
  const cut = Buffer.from(aReplyTo(QUERY, 0, [ADDRESS, ADDRESS]).subarray(0, -ADDRESS.length));
  cut[2] = 0x83;
  assert.equal(readReply(cut, true)?.message.readUInt16BE(6), 1);
});
