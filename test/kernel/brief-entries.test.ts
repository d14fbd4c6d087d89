// Proves how long cached replies stay in the kernel's table, and who has room there: with a clock that the test sets, against a
// real table.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import type { BriefKernelAnswer } from "../../src/base/model/kernel-answer.ts";
import { AnswerKinds } from "../../src/kernel/answers/answer-kinds.ts";
import type { BriefEntries } from "../../src/kernel/answers/brief-entries.ts";
import { BriefTable } from "../../src/kernel/answers/brief-table.ts";
import { BRIEF_ENTRY, BRIEF_VALUE_BYTES, COUNT_BYTES, KINDS } from "../../src/kernel/answers/layout.ts";
import { monotonicNs } from "../../src/kernel/monotonic.ts";
import { TYPE } from "../support/scripted/builders.ts";

const SECOND_NS = 1_000_000_000;
const LIMITS = { whole: 12, each: 8, always: 2 };
const kinds = new AnswerKinds(new ArrayBuffer(KINDS * COUNT_BYTES));
const into = Buffer.alloc(BRIEF_VALUE_BYTES);

function aTable(t: TestContext): BriefTable {
  const table = new BriefTable(4, LIMITS);
  t.after(() => table.close());
  return table;
}

function anAnswer(name: string): BriefKernelAnswer {
  const label = Buffer.from(name, "latin1");
  return {
    type: TYPE.A,
    name: Buffer.concat([Buffer.of(label.length), label]),
    nameBytes: label.length + 1,
    labels: 1,
    rcode: 0,
    isAuthoritative: false,
    answers: 0,
    authorities: 0,
    additionals: 0,
    message: Buffer.of(1, 2, 3),
    from: 0,
    to: 3,
    ttlOffsets: [],
    isDnssecOk: false,
    isUnchecked: false,
    isAuthentic: false,
    source: "cache",
    isFailure: false,
    lasting: { sinceMs: 0, forMs: 60_000 },
  };
}

// A period may end between two calls.
function remembers(entries: BriefEntries, name: string): boolean {
  return [1, 2, 3].some(() => entries.remember(anAnswer(name), 1));
}

test("an entry stays for its period and a second at least, and goes when two rounds of 10 s are over", (t) => {
  let ended = 0;
  const entries = aTable(t).entriesOf(0, kinds, () => ended++);
  const startNs = monotonicNs();
  assert.ok(remembers(entries, "popular"));
  assert.ok(entries.read(BRIEF_ENTRY, into) !== undefined);
  entries.sweep(startNs + 9 * SECOND_NS);
  assert.deepEqual([entries.size, ended], [1, 0]);
  // What it counts can still be read.
  entries.sweep(startNs + 11 * SECOND_NS);
  assert.deepEqual([entries.size, ended], [1, 1]);
  assert.ok(entries.read(BRIEF_ENTRY, into) !== undefined);
  entries.sweep(startNs + 22 * SECOND_NS);
  assert.deepEqual([entries.size, ended], [0, 2]);
  assert.equal(entries.read(BRIEF_ENTRY, into), undefined);
});

test("after a long time without a query, nothing stays", (t) => {
  const entries = aTable(t).entriesOf(0, kinds, () => undefined);
  const startNs = monotonicNs();
  assert.ok(remembers(entries, "popular"));
  entries.sweep(startNs + 60 * SECOND_NS);
  assert.equal(entries.size, 0);
});

test("each namespace has its share, and a little whatever the others have; what has ended makes room for others", (t) => {
  const table = aTable(t);
  const [greedy, second, third] = [0, 1, 2].map((space) => table.entriesOf(space, kinds, () => undefined)) as [
    BriefEntries,
    BriefEntries,
    BriefEntries,
  ];
  for (const entries of [greedy, second, third])
    for (let index = 0; index < 10; index++) remembers(entries, `n${index}`);
  assert.deepEqual([greedy.size, second.size, third.size], [LIMITS.each, 4, LIMITS.always]);
  table.sweep(monotonicNs() + 60 * SECOND_NS);
  for (let index = 0; index < 10; index++) remembers(third, `n${index}`);
  assert.deepEqual([greedy.size, second.size, third.size], [0, 0, LIMITS.each]);
});

test("what a closed namespace leaves is deleted a second later, and its room is free then", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const table = aTable(t);
  const entries = table.entriesOf(0, kinds, () => undefined);
  assert.ok(remembers(entries, "popular"));
  const key = Buffer.from(entries.read(BRIEF_ENTRY, into) as Buffer);
  entries.close();
  t.mock.timers.tick(999);
  assert.ok(table.read(key, into));
  t.mock.timers.tick(1);
  assert.ok(!table.read(key, into));
});

test("the numbers of entries of two rounds differ", (t) => {
  const entries = aTable(t).entriesOf(0, kinds, () => undefined);
  assert.ok(remembers(entries, "first"));
  const old = entries.read(BRIEF_ENTRY, into);
  entries.sweep(monotonicNs() + 11 * SECOND_NS);
  assert.ok(remembers(entries, "second"));
  assert.deepEqual(entries.read(BRIEF_ENTRY, into), old);
  const other = [1, 2, 3].map((bit) => entries.read(BRIEF_ENTRY | (bit << 14), into)).find((key) => key !== undefined);
  assert.ok(other?.includes("second"));
});
