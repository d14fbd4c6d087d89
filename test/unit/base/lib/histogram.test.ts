// Proves that a histogram puts each value into the right bucket, including at bounds, and combines series.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Histogram } from "../../../../src/base/lib/histogram.ts";

test("buckets are cumulative and include their bound", () => {
  const histogram = new Histogram(2, [1, 2, 4]);
  for (const value of [0.5, 1, 1.5, 2, 3, 100]) histogram.add(0, value);
  assert.deepEqual(histogram.read([0]), { bounds: [1, 2, 4], atMost: [2, 4, 5, 6], sum: 108 });
  assert.deepEqual(histogram.read([1]).atMost, [0, 0, 0, 0]);
});

test("several series are combined", () => {
  const histogram = new Histogram(3, [1]);
  histogram.add(0, 1);
  histogram.add(2, 5);
  assert.deepEqual(histogram.read([0, 1, 2]), { bounds: [1], atMost: [1, 2], sum: 6 });
});

test("durations are told apart from that of one local answer to longer than any client waits", () => {
  const { bounds } = new Histogram(1);
  assert.deepEqual([bounds[0], bounds.at(-1)], [0.000_062_5, 8.192]);
});
