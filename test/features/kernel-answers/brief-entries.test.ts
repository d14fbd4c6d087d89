// Proves how long cached replies stay in the kernel's table, and who has room there: with a clock that the test sets, against a
// real table.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import type { BriefKernelAnswer } from "../../../src/features/kernel-answers/kernel/kernel-answer.ts";
import { AnswerKinds } from "../../../src/features/kernel-answers/kernel/answer-table.ts";
import { type BriefEntries, monotonicNs } from "../../../src/features/kernel-answers/kernel/brief-entries.ts";
import { BriefTable } from "../../../src/features/kernel-answers/kernel/brief-table.ts";
import {
  BRIEF_ENTRY,
  BRIEF_KEY,
  BRIEF_VALUE_BYTES,
  COUNT_BYTES,
  KINDS,
  BATCH_SHIFT,
} from "../../../src/features/kernel-answers/kernel/layout.ts";
import { TYPE } from "../../support/scripted/builders.ts";

const SECOND_NS = 1_000_000_000;
// Fewer than a round may have.
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
    rotated: 0,
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
function remembers(entries: BriefEntries, name: string, isFailure = false): boolean {
  const answer = { ...anAnswer(name), isFailure };
  return [1, 2, 3].some(() => entries.isAskedAgain(answer) && entries.remember(answer));
}

interface Opened {
  readonly entries: BriefEntries;
  readonly world: { generation: number; ended: number };
}

function opened(table: BriefTable, space = 0): Opened {
  const world = { generation: 1, ended: 0 };
  const entries = table.open({ space, kinds, generation: () => world.generation, onEnding: () => world.ended++ });
  return { entries, world };
}

test("an entry stays for its period and a second at least, and then goes with its round of 5 s", (t) => {
  const { entries, world } = opened(aTable(t));
  const startNs = monotonicNs();
  assert.ok(remembers(entries, "popular"));
  assert.ok(entries.read(BRIEF_ENTRY, into) !== undefined);
  entries.sweep(startNs + 4 * SECOND_NS);
  entries.sweep(startNs + 6 * SECOND_NS);
  entries.sweep(startNs + 15 * SECOND_NS);
  assert.deepEqual([entries.size, world.ended], [1, 0]);
  assert.ok(entries.read(BRIEF_ENTRY, into) !== undefined);
  // What it counts is read before.
  entries.sweep(startNs + 16 * SECOND_NS);
  assert.deepEqual([entries.size, world.ended], [0, 1]);
  assert.equal(entries.read(BRIEF_ENTRY, into), undefined);
});

test("entries of an ended generation go a second later, and give their room to the next one", (t) => {
  const { entries, world } = opened(aTable(t));
  const startNs = monotonicNs();
  for (let index = 0; index < 10; index++) remembers(entries, `n${index}`);
  assert.equal(entries.size, LIMITS.each);
  world.generation++;
  entries.sweep(startNs + SECOND_NS);
  assert.equal(entries.size, LIMITS.each);
  entries.sweep(startNs + 2.5 * SECOND_NS);
  assert.equal(entries.size, 0);
  assert.ok(remembers(entries, "n0"));
  assert.equal(entries.size, 1);
});

test("where generations change faster than entries can be deleted, the process answers", (t) => {
  const { entries, world } = opened(aTable(t));
  const remembered = Array.from({ length: 12 }, () => {
    world.generation++;
    return remembers(entries, "popular");
  });
  assert.deepEqual(
    remembered,
    remembered.map((_, index) => index < LIMITS.each),
  );
  entries.sweep(monotonicNs() + 60 * SECOND_NS);
  entries.sweep(monotonicNs() + 120 * SECOND_NS);
  world.generation++;
  assert.ok(remembers(entries, "popular"));
});

test("each namespace has its share, and a little whatever the others have; what has ended makes room for others", (t) => {
  const table = aTable(t);
  const [greedy, second, third] = [0, 1, 2].map((space) => opened(table, space).entries) as [
    BriefEntries,
    BriefEntries,
    BriefEntries,
  ];
  for (const entries of [greedy, second, third])
    for (let index = 0; index < 10; index++) remembers(entries, `n${index}`);
  assert.deepEqual([greedy.size, second.size, third.size], [LIMITS.each, 4, LIMITS.always]);
  table.sweep(monotonicNs() + 60 * SECOND_NS);
  table.sweep(monotonicNs() + 120 * SECOND_NS);
  for (let index = 0; index < 10; index++) remembers(third, `m${index}`);
  assert.deepEqual([greedy.size, second.size, third.size], [0, 0, LIMITS.each]);
});

test("what a closed namespace leaves is deleted after a while, and its room is free then", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const table = aTable(t);
  const { entries } = opened(table);
  assert.ok(remembers(entries, "popular"));
  const key = Buffer.from(entries.read(BRIEF_ENTRY, into) as Buffer);
  entries.close();
  t.mock.timers.tick(1_000);
  assert.ok(table.read(key, into));
  t.mock.timers.tick(1_000);
  assert.ok(!table.read(key, into));
});

test("the numbers of entries of different rounds differ", (t) => {
  const { entries } = opened(aTable(t));
  assert.ok(remembers(entries, "first"));
  const old = entries.read(BRIEF_ENTRY, into);
  entries.sweep(monotonicNs() + 11 * SECOND_NS);
  assert.ok(remembers(entries, "second"));
  assert.deepEqual(entries.read(BRIEF_ENTRY, into), old);
  assert.ok(entries.read(BRIEF_ENTRY | (1 << BATCH_SHIFT), into)?.includes("second"));
});

test("names with the same first label end together, so that all steps of a lookup are seen", (t) => {
  const { entries } = opened(aTable(t));
  const names = ["db", "db\u0006search\u0004test", "db\u0004test"];
  const periods = names.map((name, index) => {
    const wire = Buffer.concat([Buffer.of(2), Buffer.from(name, "latin1")]);
    const answer = { ...anAnswer("db"), name: wire, nameBytes: wire.length, labels: 2, type: index };
    assert.ok([1, 2, 3].some(() => entries.isAskedAgain(answer) && entries.remember(answer)));
    return (entries.read(BRIEF_ENTRY | index, into) as Buffer).readUInt32LE(BRIEF_KEY.period);
  });
  // A period may have ended between two.
  assert.ok(Math.max(...periods) - Math.min(...periods) <= 1 && new Set(periods).size <= 2);
});
