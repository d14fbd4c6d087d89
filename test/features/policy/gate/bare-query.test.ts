// Proves that a bare query has its question and nothing else of what a client sent, and that refusals are readable replies.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, encode } from "dns-packet";
import * as fc from "fast-check";

import { errorOption } from "../../../../src/base/dns/extended-error.ts";
import { type ContentsVisitor, visitContents } from "../../../../src/features/policy/gate/answer-gate.ts";
import { Question } from "../../../../src/query/wire/question.ts";
import { refusedReply, makeBare } from "../../../../src/features/policy/gate/refused-reply.ts";
import { SLOT_BYTES } from "../../../../src/query/ports.ts";
import { runs } from "../../../support/rig/runs.ts";

const SECRET = "736563726574";
const OFFSET = 7;

function placed(message: Buffer): Buffer {
  const block = Buffer.alloc(SLOT_BYTES + OFFSET);
  message.copy(block, OFFSET);
  return block;
}

test("options, records, flags and a signature are gone, and what the client can receive stays", () => {
  const opt = {
    type: "OPT" as const,
    name: "." as const,
    udpPayloadSize: 4_000,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0x8000,
    flag_do: true,
    options: [{ code: 65_001, data: Buffer.from(SECRET, "hex") }],
  };
  const message = encode({
    type: "query",
    id: 4_711,
    flags: 0x0150,
    questions: [{ type: "A", name: "exact.ok.test" }],
    additionals: [opt as never, { type: "TXT", name: "more.test", data: Buffer.from(SECRET, "hex") }],
  });
  const block = placed(message);
  // The reserved bit.
  block[OFFSET + 3] = (block[OFFSET + 3] as number) | 0x40;
  const question = new Question();
  assert.equal(question.read(block, OFFSET, message.length), "answer");
  makeBare(block, question);
  const bare = block.subarray(OFFSET, question.messageEnd);
  assert.ok(!bare.includes(Buffer.from(SECRET, "hex")));
  const { id, questions, answers, additionals } = decode(bare);
  assert.deepEqual([id, questions?.[0]?.name, answers?.length, additionals?.length], [4_711, "exact.ok.test", 0, 1]);
  assert.deepEqual([question.records.optUdpSize, question.records.isDnssecOk], [4_000, true]);
  assert.equal((bare[3] as number) & 0x40, 0);
  assert.equal((bare[2] as number) & 0x01, 1, "it asks for recursion, as before");
});

test("any query that can be read is bare afterwards, and has the same question", () => {
  const label = fc.stringMatching(/^[a-z0-9-]{1,20}$/);
  fc.assert(
    fc.property(
      fc.array(label, { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      fc.uint8Array({ maxLength: 40 }),
      (labels, hasOpt, extra) => {
        const name = labels.join(".");
        const opt = {
          type: "OPT",
          name: ".",
          udpPayloadSize: 1_232,
          flags: 0,
          options: [{ code: 65_001, data: Buffer.from(extra) }],
        };
        const message = encode({
          type: "query",
          id: 1,
          questions: [{ type: "TXT", name }],
          additionals: hasOpt ? [opt as never] : [],
        });
        const block = placed(Buffer.concat([message, Buffer.from(extra)]));
        const question = new Question();
        assert.equal(question.read(block, OFFSET, message.length + extra.length), "answer");
        makeBare(block, question);
        assert.equal(question.messageEnd - question.end, hasOpt ? 11 : 0);
        assert.equal(decode(block.subarray(OFFSET, question.messageEnd)).questions?.[0]?.name, name);
      },
    ),
  );
});

test("a refusal fits into what the client can receive, whatever its name and text are", () => {
  for (const length of [1, 20, 60]) {
    const name = Array.from({ length: 4 }, () => "x".repeat(length)).join(".");
    const message = encode({ type: "query", id: 1, questions: [{ type: "A", name }] });
    const block = placed(message);
    const why = errorOption(15, "z".repeat(300));
    const size = refusedReply(block, OFFSET, message.length, { limit: 512, hasOpt: true, isDnssecOk: false, why });
    assert.ok(size <= 512);
    const reply = decode(block.subarray(OFFSET, OFFSET + size)) as ReturnType<typeof decode> & { rcode?: string };
    assert.deepEqual([reply.rcode, reply.authorities?.[0]?.type, reply.additionals?.length], ["NXDOMAIN", "SOA", 1]);
  }
});

test("damaged replies are read to their end or refused, and never make up an address", () => {
  const reply = encode({
    type: "response",
    id: 1,
    questions: [{ type: "A", name: "a.test" }],
    answers: [
      { type: "CNAME", name: "a.test", data: "b.test" },
      { type: "A", name: "b.test", data: "192.0.2.1" },
      { type: "AAAA", name: "b.test", data: "2001:db8::1" },
    ],
  });
  const seen = (message: Uint8Array): { readonly isWhole: boolean; readonly found: string[] } => {
    const found: string[] = [];
    const visitor: ContentsVisitor = {
      address: (bytes) => found.push(Buffer.from(bytes).toString("hex")) > 0,
      target: (labels) => found.push(Buffer.from(labels).toString("latin1")) > 0,
    };
    return { isWhole: visitContents(message, visitor), found };
  };
  assert.deepEqual(seen(reply), {
    isWhole: true,
    found: ["\u0001b\u0004test", "c0000201", "20010db8000000000000000000000001"],
  });
  for (let length = 12; length < reply.length; length++) assert.ok(seen(reply.subarray(0, length)).found.length < 4);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(reply.length - 1), fc.nat(255)), { maxLength: 8 }), (changes) => {
      const damaged = Buffer.from(reply);
      for (const [at, byte] of changes) damaged[at] = byte;
      for (const each of seen(damaged).found) assert.ok(each.length <= 255);
    }),
    { numRuns: runs(300) },
  );
});
