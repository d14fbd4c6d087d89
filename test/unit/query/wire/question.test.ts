// Proves the parsing of queries: the verdict on each kind of message, and the resulting question.

import assert from "node:assert/strict";
import { test } from "node:test";

import { hashOf } from "../../../../src/base/model/label-table.ts";
import { wireLabels } from "../../../../src/base/dns/name.ts";
import { Question, type QuestionResult } from "../../../../src/query/wire/question.ts";
import { SLOT_BYTES } from "../../../../src/query/ports.ts";
import { TYPE, aName, aPointer, aQuery, aRecord, anOpt, u16 } from "../../../support/scripted/builders.ts";

const OFFSET = 40;
const LONGEST = [63, 63, 63, 61].map((size) => "a".repeat(size)).join(".");
const EMPTY_A = aRecord({ type: TYPE.A });

const VERDICTS: Readonly<Record<string, readonly [QuestionResult, Buffer]>> = {
  "a plain query": ["answer", aQuery()],
  "a query for the root": ["answer", aQuery({ name: "." })],
  "a query with an OPT": ["answer", aQuery({ opt: {} })],
  "a query of any class": ["answer", aQuery({ class: 0xffff })],
  "a query with junk after it": ["answer", aQuery({ tail: Buffer.alloc(100, 0xff) })],
  "a query with the reserved bit": ["answer", aQuery({ flags: 0x0040 })],
  "a NOTIFY": ["answer", aQuery({ flags: 0x2000 })],
  "a query with one answer, one authority, two additionals": [
    "answer",
    aQuery({ answers: [EMPTY_A], authorities: [EMPTY_A], additionals: [EMPTY_A, anOpt()] }),
  ],
  "a query whose sections are announced but not there": ["answer", aQuery({ counts: [1, 1, 1, 2] })],
  "a query that ends after its name": ["answer", aQuery({ typeAndClass: Buffer.alloc(0) })],
  "a query that ends after its type": ["answer", aQuery({ typeAndClass: u16(TYPE.A) })],
  "a name of 255 octets": ["answer", aQuery({ name: LONGEST })],
  "a name of 127 labels": ["answer", aQuery({ name: Array.from({ length: 127 }, () => "b").join(".") })],

  "no octet at all": ["ignore", Buffer.alloc(0)],
  "eleven octets": ["ignore", aQuery().subarray(0, 11)],
  "a reply": ["ignore", aQuery({ flags: 0x8000 })],
  "a reply with an unknown opcode": ["ignore", aQuery({ flags: 0xf800 })],
  "a bare header that announces a question": ["ignore", aQuery().subarray(0, 12)],

  "a status request": ["not-implemented", aQuery({ flags: 0x1000 })],
  "an update": ["not-implemented", aQuery({ flags: 0x2800 })],
  "opcode 15": ["not-implemented", aQuery({ flags: 0x7800 })],
  "an update whose counts are impossible": ["not-implemented", aQuery({ flags: 0x2800, counts: [9, 9, 9, 9] })],

  "no question": ["malformed", aQuery({ counts: [0, 0, 0, 0] })],
  "two questions": ["malformed", aQuery({ counts: [2, 0, 0, 0] })],
  "256 questions": ["malformed", aQuery({ counts: [256, 0, 0, 0] })],
  "two answers": ["malformed", aQuery({ counts: [1, 2, 0, 0] })],
  "256 answers": ["malformed", aQuery({ counts: [1, 256, 0, 0] })],
  "two authorities": ["malformed", aQuery({ counts: [1, 0, 2, 0] })],
  "three additionals": ["malformed", aQuery({ counts: [1, 0, 0, 3] })],
  "65,535 of everything": ["malformed", aQuery({ counts: [0xffff, 0xffff, 0xffff, 0xffff] })],
  "a header that announces no question": ["malformed", aQuery({ counts: [0, 0, 0, 0] }).subarray(0, 12)],
  "a label that is cut": ["malformed", aQuery().subarray(0, 15)],
  "a name without its end": ["malformed", aQuery().subarray(0, 16)],
  "a type that is cut": ["malformed", aQuery({ typeAndClass: Buffer.of(0) })],
  "a class that is cut": ["malformed", aQuery({ typeAndClass: Buffer.of(0, 1, 0) })],
  "a label of 64 octets": ["malformed", aQuery({ name: `a.${"b".repeat(64)}` })],
  "a label of the reserved kind 10": ["malformed", aQuery({ name: Buffer.of(0x80, 0) })],
  "a name of 256 octets": ["malformed", aQuery({ name: `${LONGEST}a` })],
  "a name of 128 labels": ["malformed", aQuery({ name: Array.from({ length: 128 }, () => "b").join(".") })],
  "a pointer to itself": ["malformed", aQuery({ name: aPointer(12) })],
  "a pointer that is cut": ["malformed", aQuery({ name: Buffer.of(0xc0), typeAndClass: Buffer.alloc(0) })],
  "a pointer after the end": ["malformed", aQuery({ name: aPointer(0x3fff) })],
  "labels that point to themselves": [
    "malformed",
    aQuery({ name: Buffer.concat([Buffer.from("\x01a"), aPointer(12)]) }),
  ],

  "a record that is cut": ["malformed-after-question", aQuery({ additionals: [anOpt().subarray(0, 10)] })],
  "a record whose data are cut": [
    "malformed-after-question",
    aQuery({ additionals: [aRecord({ type: TYPE.TXT, dataLength: 1 })] }),
  ],
  "an address of three octets": [
    "malformed-after-question",
    aQuery({ answers: [aRecord({ type: TYPE.A, data: Buffer.alloc(3) })] }),
  ],
  "a broken authority before a good OPT": [
    "malformed-after-question",
    aQuery({ authorities: [aRecord({ owner: aPointer(0x3fff), type: TYPE.A })], opt: {} }),
  ],
};

for (const [what, [verdict, message]] of Object.entries(VERDICTS)) {
  test(`the verdict on ${what} is "${verdict}"`, () => {
    assert.equal(read(message).verdict, verdict);
  });
}

test("a question is measured, lower-cased and hashed label by label", () => {
  const { question } = read(aQuery({ name: "Web.One.test", type: TYPE.AAAA }));
  const labels = wireLabels("web.one.test") ?? assert.fail();
  assert.deepEqual(Buffer.from(question.folded.subarray(0, question.foldedLength)), Buffer.from(labels));
  assert.deepEqual([...question.lengthOf.subarray(0, 4)], [0, 4, 8, 13]);
  assert.deepEqual(
    [0, 1, 2, 3].map((count) => question.hashOf[count]),
    [0, 4, 8, 13].map((length) => hashOf(labels.subarray(0, length))),
  );
  assert.equal(question.labelCount, 3);
  assert.equal(question.hash, hashOf(labels));
  assert.equal(question.type, TYPE.AAAA);
  assert.equal(question.hasUpperCase, true);
  assert.equal(question.nameEnd - OFFSET, 12 + labels.length + 1);
  assert.equal(question.end - question.nameEnd, 4);
});

test("the root has no label", () => {
  const { question } = read(aQuery({ name: "." }));
  assert.deepEqual([question.labelCount, question.foldedLength, question.end - OFFSET], [0, 0, 12 + 1 + 4]);
  assert.equal(question.hash, hashOf(Buffer.alloc(0)));
});

test("hasUpperCase is set for ASCII capitals only, and reset for the next question", () => {
  const question = new Question();
  for (const [name, expected] of [
    ["WEB", true],
    ["web", false],
    ["w-9_~", false],
    ["\xc4", false],
  ] as const) {
    assert.equal(read(aQuery({ name }), question).verdict, "answer");
    assert.equal(question.hasUpperCase, expected, name);
  }
});

test("a compressed question is written out in place, and what follows is moved", () => {
  // The name begins with a label and continues in the data of the record after it.
  const record = aRecord({ type: 10, data: aName("one.test") });
  const name = Buffer.concat([Buffer.from("\x03Web"), aPointer(12 + 4 + 2 + 4 + 11)]);
  const { verdict, question, message } = read(aQuery({ name, type: TYPE.MX, additionals: [record] }));
  assert.equal(verdict, "answer");
  assert.deepEqual(message, aQuery({ name: "Web.one.test", type: TYPE.MX, additionals: [record] }));
  assert.deepEqual([question.labelCount, question.type], [3, TYPE.MX]);
});

test("a compressed question that is shorter when written out is rewritten, too", () => {
  // A pointer to the zero in the class: the root.
  const { verdict, message } = read(aQuery({ name: aPointer(16), typeAndClass: Buffer.of(0, 1, 0, 1) }));
  assert.equal(verdict, "answer");
  assert.deepEqual(message, aQuery({ name: "." }));
});

test("a compressed question of the longest name is written out", () => {
  const record = aRecord({ type: 10, data: aName(LONGEST) });
  const { verdict, message } = read(aQuery({ name: aPointer(12 + 2 + 4 + 11), additionals: [record] }));
  assert.equal(verdict, "answer");
  assert.deepEqual(message, aQuery({ name: LONGEST, additionals: [record] }));
});

test("a missing type and class become zero", () => {
  for (const typeAndClass of [Buffer.alloc(0), u16(TYPE.TXT)]) {
    const { question, message } = read(aQuery({ typeAndClass }));
    assert.equal(question.type, typeAndClass.length === 0 ? 0 : TYPE.TXT);
    assert.deepEqual(message, aQuery({ type: question.type, class: 0 }));
  }
});

test("the message ends after its last record, whatever follows", () => {
  const plain = aQuery({ opt: {} });
  assert.deepEqual(read(Buffer.concat([plain, Buffer.alloc(50, 7)])).message, plain);
});

test("counts of missing records are corrected", () => {
  const { verdict, message } = read(aQuery({ counts: [1, 1, 1, 2], answers: [EMPTY_A] }));
  assert.equal(verdict, "answer");
  assert.deepEqual(message, aQuery({ answers: [EMPTY_A] }));
});

test("nothing of one message remains in the next", () => {
  const question = new Question();
  read(aQuery({ name: "a.b.c", opt: { udpSize: 4096, version: 1, isDnssecOk: true } }), question);
  read(aQuery({ name: "d", type: TYPE.PTR }), question);
  assert.deepEqual(question.records, new Question().records);
  assert.deepEqual([question.labelCount, question.foldedLength, question.type], [1, 2, TYPE.PTR]);
});

type Read = { readonly verdict: QuestionResult; readonly question: Question; readonly message: Buffer };

// Memory after a message belongs to another one: it must neither be read nor matter.
function read(message: Buffer, question = new Question()): Read {
  const block = Buffer.alloc(OFFSET + SLOT_BYTES, 0x01);
  message.copy(block, OFFSET);
  const verdict = question.read(block, OFFSET, message.length);
  return { verdict, question, message: block.subarray(OFFSET, question.messageEnd) };
}
