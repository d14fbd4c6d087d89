// Proves that a histogram counts each value where it belongs, bounds included, and reads several series as one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Histogram } from "../../../../src/base/lib/histogram.ts";

test("values count at and above their bound, cumulated, with their sum", () => {
  const histogram = new Histogram(2, [1, 2, 4]);
  for (const value of [0.5, 1, 1.5, 2, 3, 100]) histogram.add(0, value);
  assert.deepEqual(histogram.read([0]), { bounds: [1, 2, 4], atMost: [2, 4, 5, 6], sum: 108 });
  assert.deepEqual(histogram.read([1]).atMost, [0, 0, 0, 0]);
});

test("several series are read as one", () => {
  const histogram = new Histogram(3, [1]);
  histogram.add(0, 1);
  histogram.add(2, 5);
  assert.deepEqual(histogram.read([0, 1, 2]), { bounds: [1], atMost: [1, 2], sum: 6 });
});
