// Proves that parsing a reply ends with the message, wherever its names point to.

import assert from "node:assert/strict";
import { test } from "node:test";

import { readFreshReply } from "../../../../src/query/wire/shared-reply.ts";
import { readReply } from "../../../../src/query/wire/scrub.ts";
import { TYPE, aPointer, aQuery, aRecord, aReplyTo } from "../../../support/scripted/builders.ts";

const LABELS_126 = Array.from({ length: 126 }, () => "b").join(".");

test("names that need bytes after the message are not read without them", () => {
  const texts = Array.from({ length: 120 }, () => aRecord({ owner: aPointer(12), type: TYPE.TXT }));
  const reply = Buffer.concat([aReplyTo(aQuery({ name: LABELS_126 }), 0, texts), Buffer.alloc(500, 0xff)]);
  const read = readReply(Buffer.from(reply));
  assert.ok(read);
  assert.equal(readFreshReply(read.message), undefined);
  assert.equal(readReply(Buffer.from(reply), true), undefined);
});

test("a name that points into removed bytes makes the reply invalid", () => {
  const record = aRecord({ owner: aPointer(12 + 3 + 2 + 4 + 12), type: TYPE.A, data: Buffer.of(192, 0, 2, 1) });
  const whole = aReplyTo(aQuery({ name: "a.b" }), 0, [record]);
  const after = whole.length;
  const leading = Buffer.from(whole);
  leading.writeUInt16BE(0xc000 | after, 12 + 5 + 4);
  const read = readReply(Buffer.concat([leading, Buffer.from("\x01c\x00")]));
  assert.ok(read);
  assert.equal(readFreshReply(read.message), undefined);
});
