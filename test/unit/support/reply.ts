// Parser of replies, independent of the program's code and of any package: every bit of the header, every record, and
// nothing after the last one.

import assert from "node:assert/strict";

import type { Behaviour } from "../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../src/query/answer.ts";
import { DEFERRED, DROPPED, type DeferredQuery, SLOT_BYTES } from "../../../src/query/ports.ts";
import { Question } from "../../../src/query/wire/question.ts";
import type { Client } from "../../../src/query/client/client.ts";

type ReadRecord = {
  readonly owner: string;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  readonly data: Buffer;
  // Start and end of the record in the message.
  readonly start: number;
  readonly end: number;
};

export type Reply = {
  readonly id: number;
  // Names of the set bits, in the header's order.
  readonly flags: string;
  readonly opcode: number;
  readonly rcode: number;
  readonly counts: readonly number[];
  readonly question: { readonly name: string; readonly type: number; readonly class: number } | undefined;
  readonly answers: readonly ReadRecord[];
  readonly authorities: readonly ReadRecord[];
  readonly additionals: readonly ReadRecord[];
};

const FLAGS = [
  [0x8000, "qr"],
  [0x0400, "aa"],
  [0x0200, "tc"],
  [0x0100, "rd"],
  [0x0080, "ra"],
  [0x0040, "z"],
  [0x0020, "ad"],
  [0x0010, "cd"],
] as const;

export function readReply(message: Buffer): Reply {
  const flags = message.readUInt16BE(2);
  const counts = [4, 6, 8, 10].map((at) => message.readUInt16BE(at));
  let at = 12;
  let question;
  assert.ok((counts[0] ?? 0) < 2, "no reply of ours has two questions");
  if (counts[0] === 1) {
    const name = readName(message, at);
    question = { name: name.text, type: message.readUInt16BE(name.end), class: message.readUInt16BE(name.end + 2) };
    at = name.end + 4;
  }
  const sections = counts.slice(1).map((count) => {
    const records = [];
    for (let left = count; left > 0; left--) {
      const record = readRecord(message, at);
      records.push(record);
      at = record.end;
    }
    return records;
  });
  assert.equal(at, message.length, "the reply ends with its last record");
  return {
    id: message.readUInt16BE(0),
    flags: FLAGS.flatMap(([bit, word]) => ((flags & bit) === 0 ? [] : [word])).join(" "),
    opcode: (flags >> 11) & 15,
    rcode: flags & 15,
    counts,
    question,
    answers: sections[0] ?? [],
    authorities: sections[1] ?? [],
    additionals: sections[2] ?? [],
  };
}

function readRecord(message: Buffer, start: number): ReadRecord {
  const { text: owner, end } = readName(message, start);
  const length = message.readUInt16BE(end + 8);
  return {
    owner,
    type: message.readUInt16BE(end),
    class: message.readUInt16BE(end + 2),
    ttl: message.readUInt32BE(end + 4),
    data: Buffer.from(message.subarray(end + 10, end + 10 + length)),
    start,
    end: end + 10 + length,
  };
}

// Keeps letter case. A pointer must point backwards, so that parsing ends.
export function readName(message: Buffer, start: number): { readonly text: string; readonly end: number } {
  const labels: string[] = [];
  let at = start;
  let end = -1;
  for (;;) {
    const size = message.readUInt8(at);
    if (size >= 0xc0) {
      const target = message.readUInt16BE(at) & 0x3fff;
      assert.ok(target < at, "a pointer points backwards");
      if (end === -1) end = at + 2;
      at = target;
      continue;
    }
    assert.ok(size < 64, "a label has at most 63 octets");
    if (size === 0) break;
    labels.push(message.toString("latin1", at + 1, at + 1 + size));
    at += size + 1;
  }
  return { text: labels.length === 0 ? "." : labels.join("."), end: end === -1 ? at + 1 : end };
}

// Addresses of a reply's answers as text, sorted, because their order is random.
export function addressesIn(reply: Reply): string[] {
  return reply.answers
    .map(({ data }) => (data.length === 4 ? data.join(".") : (data.toString("hex").match(/.{4}/g) ?? []).join(":")))
    .toSorted();
}

export type AnswerParts = { readonly behaviour: Behaviour; readonly client: Client; readonly isStream?: boolean };

export type AnswerResult =
  | { readonly kind: "reply"; readonly message: Buffer; readonly reply: Reply }
  | { readonly kind: "dropped" }
  | { readonly kind: "deferred"; readonly deferred: DeferredQuery };

// Offset of messages in the tests' blocks: a missing addition of the offset shows.
export const OFFSET = 100;

// A query in a block, as it is received.
export function placed(query: Buffer): { readonly block: Buffer; readonly question: Question } {
  const block = Buffer.alloc(OFFSET + SLOT_BYTES, 0xee);
  query.copy(block, OFFSET);
  const question = new Question();
  assert.equal(question.read(block, OFFSET, query.length), "answer");
  return { block, question };
}

// Runs one query through the whole answerer.
export function answerOnce(query: Buffer, { behaviour, client, isStream = false }: AnswerParts): AnswerResult {
  const answerer = new Answerer(behaviour, { seed: 1 });
  const block = Buffer.alloc(OFFSET + SLOT_BYTES, 0xee);
  query.copy(block, OFFSET);
  const length = answerer.answer(client, block, OFFSET, query.length, isStream);
  assert.ok(
    block.subarray(0, OFFSET).every((octet) => octet === 0xee),
    "nothing is written before the slot",
  );
  if (length === DROPPED) return { kind: "dropped" };
  if (length === DEFERRED) return { kind: "deferred", deferred: answerer.takeDeferred(block) };
  const message = Buffer.from(block.subarray(OFFSET, OFFSET + length));
  return { kind: "reply", message, reply: readReply(message) };
}

// For tests that expect a reply.
export function replyOnce(query: Buffer, parts: AnswerParts): Reply {
  const answered = answerOnce(query, parts);
  assert.equal(answered.kind, "reply");
  return answered.reply;
}
