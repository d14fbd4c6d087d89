// Proves that a turn ends by the thread's own time, not by that of other programs.

import assert from "node:assert/strict";
import { test } from "node:test";

import { threadMs } from "../../../../src/kernel/libc.ts";
import { TimeSlice } from "../../../../src/query/listen/udp.ts";

const WAIT_MS = 100;

test("a turn is over when both clocks say so, and the next one begins anew", () => {
  const now = { wallMs: 100, ranMs: 7 };
  const turn = new TimeSlice(1, { wallMs: () => now.wallMs, ranMs: () => now.ranMs });
  const isOverAfter = (wallMs: number, ranMs: number): boolean => {
    now.wallMs += wallMs;
    now.ranMs += ranMs;
    return turn.isOver;
  };
  for (let round = 0; round < 2; round++) {
    turn.begin();
    assert.equal(isOverAfter(1, 1), false);
    // Now the thread's own time counts.
    assert.equal(isOverAfter(0.1, 0.1), false);
    // Other programs have the processor.
    assert.equal(isOverAfter(50, 0), false);
    assert.equal(isOverAfter(50, 1), false);
    assert.equal(isOverAfter(0.1, 0.1), true);
  }
});

test("the time of a thread goes on only while it runs", () => {
  const startMs = threadMs();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS);
  const waitedMs = threadMs() - startMs;
  assert.ok(waitedMs < WAIT_MS / 2, String(waitedMs));
  while (threadMs() - startMs < waitedMs + 1);
});
