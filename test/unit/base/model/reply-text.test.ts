// Proves how a reply is formatted: its records as in zone files, its errors, and that no message makes it throw.

import assert from "node:assert/strict";
import { test } from "node:test";

import { replyText } from "../../../../src/base/model/reply-text.ts";
import { TYPE, aName, aQuery, aRecord, aReplyTo, anOpt, u16 } from "../../../support/scripted/builders.ts";

function textOfReply(type: number, data: Buffer): string | undefined {
  const reply = aReplyTo(aQuery({ name: "x.test" }), 0, [aRecord({ owner: "x.test", type, ttl: 7, data })]);
  return replyText(reply)?.answers[0]?.data;
}

test("records are written as in zone files", () => {
  for (const [type, data, text] of [
    [TYPE.A, Buffer.of(192, 0, 2, 1), "192.0.2.1"],
    [TYPE.CNAME, aName("y.test"), "y.test."],
    [TYPE.PTR, aName("."), "."],
    [TYPE.MX, Buffer.concat([u16(10), aName("mail.test")]), "10 mail.test."],
    [TYPE.SRV, Buffer.concat([u16(1), u16(2), u16(53), aName("a.test")]), "1 2 53 a.test."],
    [TYPE.TXT, Buffer.from('\x03a"b\x00'), '"a\\"b" ""'],
    [TYPE.HTTPS, Buffer.of(0, 1), "\\# 2 0001"],
    [4711, Buffer.alloc(0), "\\# 0"],
  ] as const) {
    assert.equal(textOfReply(type, data), text, String(type));
  }
});

test("a record has its name, type and TTL", () => {
  const reply = aReplyTo(aQuery({ name: "x.test" }), 0, [aRecord({ owner: "x.test", type: TYPE.HTTPS, ttl: 7 })]);
  const { name, type, ttl } = replyText(reply)?.answers[0] ?? {};
  assert.deepEqual([name, type, ttl], ["x.test.", "HTTPS", 7]);
});

test("OPT extends the response code and carries extended errors", () => {
  const query = aQuery({ name: "x.test" });
  const error = anOpt({ options: [[15, Buffer.concat([u16(22), Buffer.from("all gone")])]] });
  const reply = Buffer.concat([aReplyTo(query, 2), error]);
  reply.writeUInt16BE(1, 10);
  assert.deepEqual(replyText(reply)?.extendedErrors, [{ code: 22, name: "no reachable authority", text: "all gone" }]);
  assert.equal(replyText(reply)?.rcode, "SERVFAIL");
  const bad = Buffer.concat([aReplyTo(query, 0), aRecord({ type: TYPE.OPT, class: 1232, ttl: 0x01000000 })]);
  bad.writeUInt16BE(1, 10);
  assert.equal(replyText(bad)?.rcode, "BADVERS");
});

test("unreadable records are marked, and what is not a message gives undefined", () => {
  const data = Buffer.of(0xc0, 0xff);
  const broken = aReplyTo(aQuery({ name: "x.test" }), 3, [aRecord({ type: TYPE.CNAME, data })]);
  assert.deepEqual([replyText(broken)?.rcode, replyText(broken)?.isUnreadable], ["NXDOMAIN", true]);
  assert.equal(replyText(Buffer.alloc(11)), undefined);
  const hostile = Buffer.alloc(12, 0xff);
  assert.equal(replyText(hostile)?.isUnreadable, true);
});
