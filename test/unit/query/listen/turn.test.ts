// Proves that a turn is one round of the event loop.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";

import { Turn } from "../../../../src/query/listen/turn.ts";

test("a turn is the same number within one round, also behind a promise, and another in the next", async () => {
  const turn = new Turn();
  const first = turn.now;
  assert.equal(turn.now, first);
  await Promise.resolve();
  assert.equal(turn.now, first);
  await nextRound();
  assert.notEqual(turn.now, first);
});

test("rounds in which nobody asks change nothing", async () => {
  const turn = new Turn();
  const first = turn.now;
  await nextRound();
  await nextRound();
  const second = turn.now;
  assert.notEqual(second, first);
  assert.equal(turn.now, second);
});
