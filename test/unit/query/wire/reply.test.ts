// Proves the replies octet by octet: which header bits of the query are copied, what fits, and what is left out.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Behaviour, STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { RCODE } from "../../../../src/base/dns/rcode.ts";
import type { Question } from "../../../../src/query/wire/question.ts";
import {
  badVersion,
  failure,
  noData,
  pointerAnswer,
  refuseHeader,
  refuseQuestion,
  sizeLimit,
} from "../../../../src/query/wire/reply.ts";
import { TYPE, aName, aQuery, aRecord } from "../../../support/scripted/builders.ts";
import { OFFSET, type Reply, placed, readReply } from "../../support/reply.ts";

const ALL_FLAGS = 0x07ff;
const NOTIFY = 0x2000;
const PLAIN: Behaviour = { ...STRICT_BEHAVIOUR, ttlSeconds: 7 };

test("sizeLimit() is the announced size, within the limits of the transport", () => {
  const limits = [0, 511, 512, 513, 1232, 65_507, 65_535].map((udpSize) =>
    limitOf(aQuery({ opt: { udpSize } }), false),
  );
  assert.deepEqual(limits, [512, 512, 512, 513, 1232, 65_507, 65_507]);
  assert.equal(limitOf(aQuery(), false), 512);
  assert.deepEqual([limitOf(aQuery(), true), limitOf(aQuery({ opt: { udpSize: 512 } }), true)], [65_535, 65_535]);
});

// Behind the id: QR, the opcode, TC and RD; RA, AD, CD and the rcode. AA and Z are cleared, and so are all counts.
for (const [what, keepsOpcode, rcode, expected] of [
  ["keeps the flags that Docker's library keeps, and no count", true, RCODE.NOTIMP, "1234abb4"],
  ["for a broken message forces the opcode to QUERY", false, RCODE.FORMERR, "123483b1"],
] as const) {
  test(`an error reply of the header only ${what}`, () => {
    const block = Buffer.concat([Buffer.alloc(OFFSET), aQuery({ flags: 0x2800 | ALL_FLAGS, counts: [1, 2, 3, 4] })]);
    assert.equal(refuseHeader(block, OFFSET, rcode, keepsOpcode), 12);
    assert.equal(block.toString("hex", OFFSET, OFFSET + 12), expected + "0000".repeat(4));
  });
}

test("an error reply with the question has the question unchanged", () => {
  const query = aQuery({ name: "WEB.one", class: 3, opt: {} });
  const { block, question } = placed(query);
  const length = refuseQuestion(block, question, RCODE.FORMERR);
  const reply = readReply(block.subarray(OFFSET, OFFSET + length));
  assert.deepEqual(reply.question, { name: "WEB.one", type: TYPE.A, class: 3 });
  assert.deepEqual([reply.rcode, reply.counts, reply.flags], [RCODE.FORMERR, [1, 0, 0, 0], "qr rd"]);
});

test("a reply to a QUERY copies RD and CD, and no other flag", () => {
  const reply = replied(aQuery({ flags: ALL_FLAGS }), noData, PLAIN);
  assert.deepEqual([reply.flags, reply.opcode, reply.rcode], ["qr rd ra cd", 0, 0]);
  assert.equal(replied(aQuery({ flags: 0 }), noData, PLAIN).flags, "qr ra");
});

test("a reply to a NOTIFY copies the opcode and no flag", () => {
  const reply = replied(aQuery({ flags: NOTIFY | ALL_FLAGS }), noData, PLAIN);
  assert.deepEqual([reply.flags, reply.opcode], ["qr ra", 4]);
});

test("SERVFAIL does not set RA", () => {
  for (const rcode of [RCODE.SERVFAIL, RCODE.REFUSED]) {
    const reply = replied(aQuery({ flags: ALL_FLAGS }), (b, q, behaviour) => failure(b, q, rcode, behaviour), PLAIN);
    assert.deepEqual([reply.flags, reply.rcode, reply.counts], ["qr rd cd", rcode, [1, 0, 0, 0]]);
  }
});

test("an empty answer is header and question, whatever records the query had", () => {
  const query = aQuery({ answers: [aRecord({ type: TYPE.A })], opt: { udpSize: 4096 } });
  const reply = replied(query, noData, PLAIN);
  assert.deepEqual([reply.counts, reply.rcode], [[1, 0, 0, 0], 0]);
});

test("with hasNegativeSoa an empty answer has an SOA owned by the queried name", () => {
  const reply = replied(aQuery({ name: "Web.one" }), noData, { ...PLAIN, hasNegativeSoa: true });
  const [soa] = reply.authorities;
  assert.deepEqual([soa?.owner, soa?.type, soa?.class, soa?.ttl], ["Web.one", TYPE.SOA, 1, 7]);
  const seven = Buffer.of(0, 0, 0, 7);
  // The queried name as the primary, the root as the mailbox, serial 1, and the TTL five times.
  const numbers = Buffer.concat([Buffer.of(0, 0, 0, 1), seven, seven, seven, seven]);
  assert.deepEqual(soa?.data, Buffer.concat([Buffer.of(0xc0, 12), Buffer.of(0), numbers]));
});

test("with speaksEdns an OPT is answered with one: our size, version 0, and the DO bit of the query", () => {
  for (const isDnssecOk of [false, true]) {
    const reply = replied(aQuery({ opt: { udpSize: 4096, isDnssecOk } }), noData, { ...PLAIN, speaksEdns: true });
    const [opt] = reply.additionals;
    assert.deepEqual([opt?.owner, opt?.type, opt?.class], [".", TYPE.OPT, 1232]);
    assert.deepEqual([opt?.ttl, opt?.data.length], [isDnssecOk ? 0x8000 : 0, 0]);
  }
  assert.equal(replied(aQuery(), noData, { ...PLAIN, speaksEdns: true }).additionals.length, 0);
});

test("SERVFAIL has the OPT, too, without a part of the rcode in it", () => {
  const behaviour = { ...PLAIN, speaksEdns: true };
  const reply = replied(aQuery({ opt: {} }), (b, q) => failure(b, q, RCODE.REFUSED, behaviour), behaviour);
  assert.deepEqual([reply.rcode, reply.additionals[0]?.ttl], [RCODE.REFUSED, 0]);
});

test("BADVERS is 16, whose upper bits are in the OPT", () => {
  const reply = replied(aQuery({ opt: { version: 1 } }), badVersion, { ...PLAIN, speaksEdns: true });
  assert.deepEqual([reply.rcode, reply.additionals[0]?.ttl], [0, 0x0100_0000]);
});

test("the target of a PTR is written in full, and its owner as the behaviour says", () => {
  const target = aName("Web.One");
  const name = "2.0.20.172.in-addr.arpa";
  const answer = (behaviour: Behaviour): Reply =>
    replied(aQuery({ name, type: TYPE.PTR }), (b, q) => pointerAnswer(b, q, target, behaviour), behaviour);
  for (const [compresses, ownerBytes] of [
    [false, name.length + 2],
    [true, 2],
  ] as const) {
    const [record] = answer({ ...PLAIN, compresses }).answers;
    assert.deepEqual([record?.owner, record?.type, record?.ttl, record?.data], [name, TYPE.PTR, 7, target]);
    assert.equal((record?.end ?? 0) - (record?.start ?? 0), ownerBytes + 10 + target.length);
  }
});

test("the owner of a PTR is in full if it fits, else compressed, else the record is left out", () => {
  const name = `${"0.".repeat(32)}ip6.arpa`;
  const query = aQuery({ name, type: TYPE.PTR });
  // The record without its owner takes ten octets beside the target.
  for (const [targetBytes, ownerBytes] of [
    [512 - query.length - 10 - 74, 74],
    [512 - query.length - 10 - 73, 2],
    [512 - query.length - 10 - 2, 2],
    [512 - query.length - 10 - 1, undefined],
  ] as const) {
    const target = Buffer.alloc(targetBytes);
    const { answers, flags } = replied(query, (b, q) => pointerAnswer(b, q, target, PLAIN, 512), PLAIN);
    const [record] = answers;
    assert.equal(
      record && record.end - record.start - 10 - targetBytes,
      ownerBytes,
      `a target of ${targetBytes} octets`,
    );
    assert.equal(flags, ownerBytes === undefined ? "qr tc rd ra" : "qr rd ra");
  }
});

test("a TTL of more than 16 bits is written whole", () => {
  const behaviour = { ...PLAIN, ttlSeconds: 86_400 };
  assert.equal(
    replied(aQuery(), (b, q) => pointerAnswer(b, q, aName("a"), behaviour), behaviour).answers[0]?.ttl,
    86_400,
  );
});

function limitOf(query: Buffer, isStream: boolean): number {
  return sizeLimit(placed(query).question.records.optUdpSize, isStream);
}

type Write = (block: Buffer, question: Question, behaviour: Behaviour) => number;

function replied(query: Buffer, write: Write, behaviour: Behaviour): Reply {
  const { block, question } = placed(query);
  return readReply(block.subarray(OFFSET, OFFSET + write(block, question, behaviour)));
}
