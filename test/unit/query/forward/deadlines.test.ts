// Proves that every deadline expires in time, once, with a single timer.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";

import * as fc from "fast-check";

import { Deadlines, type DeadlineTarget } from "../../../../src/query/forward/upstream-query-plan.ts";

let nowMs = 0;
const now = (): number => nowMs;

beforeEach(() => {
  nowMs = 0;
  mock.timers.enable({ apis: ["setTimeout"] });
});
afterEach(() => mock.timers.reset());

function pass(ms: number): void {
  for (let left = ms; left > 0; left--) {
    nowMs += 1;
    mock.timers.tick(1);
  }
}

type Waiting = DeadlineTarget & { readonly calledAtMs: number[] };

function waiting(onDue: () => void = () => undefined): Waiting {
  const calledAtMs: number[] = [];
  return {
    step: undefined,
    indexInStep: -1,
    calledAtMs,
    onDue: () => {
      calledAtMs.push(nowMs);
      onDue();
    },
  };
}

test("a deadline expires once, not early, and within a step", () => {
  const deadlines = new Deadlines(now);
  const [one, other] = [waiting(), waiting()];
  deadlines.set(one, 25);
  deadlines.set(other, 300);
  pass(1_000);
  assert.deepEqual([one.calledAtMs, other.calledAtMs], [[30], [300]]);
});

test("a new deadline replaces the old one, earlier or later", () => {
  const deadlines = new Deadlines(now);
  const [later, earlier] = [waiting(), waiting()];
  deadlines.set(later, 50);
  deadlines.set(later, 100);
  deadlines.set(earlier, 500);
  deadlines.set(earlier, 20);
  pass(1_000);
  assert.deepEqual([later.calledAtMs, earlier.calledAtMs], [[100], [20]]);
});

test("a cleared deadline does not expire, even if another one of the same step clears it", () => {
  const deadlines = new Deadlines(now);
  const [cleared, second] = [waiting(), waiting()];
  const first = waiting(() => deadlines.clear(second));
  deadlines.set(cleared, 40);
  deadlines.clear(cleared);
  deadlines.set(first, 60);
  deadlines.set(second, 60);
  pass(200);
  assert.deepEqual([cleared.calledAtMs, first.calledAtMs, second.calledAtMs], [[], [60], []]);
});

test("after this process has stood still, what arrived meanwhile is read before anything expires", async () => {
  const deadlines = new Deadlines(now);
  const [answered, unanswered] = [waiting(), waiting()];
  deadlines.set(answered, 20);
  deadlines.set(unanswered, 20);
  nowMs += 500;
  mock.timers.tick(500);
  deadlines.clear(answered);
  await nextRound();
  assert.deepEqual([answered.calledAtMs, unanswered.calledAtMs], [[], [500]]);
});

test("an expired object may set a deadline again, even in the past", () => {
  const deadlines = new Deadlines(now);
  let again = 2;
  const one: Waiting = waiting(() => {
    if (again-- > 0) deadlines.set(one, nowMs - 100);
  });
  deadlines.set(one, 10);
  pass(100);
  assert.equal(one.calledAtMs.length, 3);
});

test("after any sequence of set and clear, each expires in its last step only", () => {
  const act = fc.record({
    who: fc.nat({ max: 9 }),
    inMs: fc.option(fc.integer({ min: 0, max: 500 }), { nil: undefined }),
    after: fc.nat({ max: 40 }),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      nowMs = 0;
      const deadlines = new Deadlines(now);
      const all = Array.from({ length: 10 }, () => waiting());
      const expected = new Map<Waiting, number>();
      for (const { who, inMs, after } of acts) {
        const one = all[who] ?? assert.fail();
        const calls = one.calledAtMs.length;
        if (inMs === undefined) {
          deadlines.clear(one);
          expected.delete(one);
        } else {
          deadlines.set(one, nowMs + inMs);
          expected.set(one, nowMs + inMs);
        }
        assert.equal(one.calledAtMs.length, calls, "never from inside");
        pass(after);
        for (const [due, atMs] of expected) {
          const called = due.calledAtMs.at(-1);
          if (called === undefined || called < atMs) assert.ok(nowMs < atMs + 11, "late");
          else expected.delete(due);
        }
      }
      pass(1_000);
      for (const [due, atMs] of expected) assert.ok((due.calledAtMs.at(-1) ?? -1) >= atMs);
      for (const { step } of all) assert.equal(step, undefined);
    }),
    { numRuns: 50 },
  );
});
