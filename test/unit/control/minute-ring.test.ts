// Proves that minutes are counted by the clock: also when samples are missing, when the clock is set, and for longer than a day.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { MinuteRing } from "../../../src/control/history/history-rings.ts";

const START_MS = Date.parse("2026-01-01T12:00:00Z");
const MINUTE_MS = 60_000;

function after(...samples: readonly (readonly [atMs: number, queries: number, failures?: number])[]) {
  const ring = new MinuteRing();
  for (const [atMs, queries, failures = 0] of samples) ring.add(START_MS + atMs, queries, failures);
  return ring.report();
}

test("samples of one minute are added, and a minute without one has no queries", () => {
  const samples = [
    [0, 3, 1],
    [5_000, 4],
    [59_999, 1, 1],
    [3 * MINUTE_MS, 9],
  ] as const;
  const { until, queries, failures } = after(...samples);
  assert.deepEqual(
    [queries, failures],
    [
      [8, 0, 0, 9],
      [2, 0, 0, 0],
    ],
  );
  assert.equal(until, "2026-01-01T12:04:00.000Z");
});

test("before the first sample there is nothing", () => {
  assert.deepEqual(after(), { until: null, queries: [], failures: [] });
});

test("a clock that is set back loses nothing, and one that is set far ahead keeps it bounded", () => {
  assert.deepEqual(after([0, 1], [-10 * MINUTE_MS, 2], [MINUTE_MS, 4]).queries, [3, 4]);
  const { queries, until } = after([0, 1], [1e12, 2]);
  assert.deepEqual([queries.length, queries.at(-1), queries[0]], [LIMITS.historyMinutes, 2, 0]);
  assert.equal(until, new Date(Math.floor((START_MS + 1e12) / MINUTE_MS + 1) * MINUTE_MS).toISOString());
});

test("a day is kept", () => {
  const samples = Array.from(
    { length: LIMITS.historyMinutes + 7 },
    (_, minute) => [minute * MINUTE_MS, minute] as const,
  );
  const { queries, failures } = after(...samples);
  assert.deepEqual([queries.length, failures.length, queries[0]], [LIMITS.historyMinutes, LIMITS.historyMinutes, 7]);
});
