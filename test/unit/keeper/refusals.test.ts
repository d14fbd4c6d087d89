// What the keeper answers while it refuses: SERVFAIL with the question and nothing else, and nothing to what is no query.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { decode } from "dns-packet";

import { queryOf } from "../../../src/base/dns/query.ts";
import { wireLabels } from "../../../src/base/dns/name.ts";
import { refusalOf } from "../../../src/keeper/keeper.ts";

const ROUNDS = 20_000;

function refused(query: Uint8Array): Buffer {
  const message = Buffer.from(query);
  return message.subarray(0, refusalOf(message));
}

test("a query gets SERVFAIL with its id and question, without its options", () => {
  const labels = wireLabels("a.b.Example.test") ?? assert.fail();
  const reply = refused(queryOf({ labels, type: 16, id: 4711, hasOpt: true }));
  const { id, questions, answers, authorities, additionals, flags } = decode(reply);
  assert.equal(id, 4711);
  assert.deepEqual(
    questions?.map(({ name, type }) => [name, type]),
    [["a.b.Example.test", "TXT"]],
  );
  assert.deepEqual([answers, authorities, additionals], [[], [], []]);
  // Recursion was desired and is available; SERVFAIL.
  assert.equal(flags, 0x182);
});

test("the longest name is answered, and one that is cut off is not", () => {
  const labels =
    wireLabels([...Array.from({ length: 3 }, () => "x".repeat(63)), "y".repeat(61)].join(".")) ?? assert.fail();
  const query = queryOf({ labels, type: 1 });
  assert.equal(refused(query).length, query.length);
  for (let length = 0; length < query.length; length++)
    assert.equal(refused(query.subarray(0, length)).length, 0, String(length));
});

test("replies, messages with no question or several, and compressed names get nothing", () => {
  const query = queryOf({ labels: wireLabels("a.test") ?? assert.fail(), type: 1 });
  const changed = (at: number, value: number): Buffer => {
    const message = Buffer.from(query);
    message[at] = value;
    return message;
  };
  for (const message of [changed(2, 0x80), changed(5, 0), changed(5, 2), changed(12, 0xc0), Buffer.alloc(0)])
    assert.equal(refused(message).length, 0, message.toString("hex"));
});

test("random bytes never get more than they have, and no answer that is a query", () => {
  for (let round = 0; round < ROUNDS; round++) {
    const message = randomBytes(round % 64);
    if (message.length > 5) message.set([message[2] ?? 0, 0, 0, 1], 2);
    const reply = refused(message);
    assert.ok(reply.length <= message.length);
    if (reply.length > 0) assert.equal((reply[2] ?? 0) & 0x80, 0x80);
  }
});
