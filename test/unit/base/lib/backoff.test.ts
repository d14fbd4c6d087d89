// Proves the delays between retries.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { backoffMs } from "../../../../src/base/lib/retry.ts";

const MIDDLE = 0.5;

test("backoffMs() doubles from the first delay to the last", () => {
  const waits = Array.from({ length: 6 }, (_, attempt) => backoffMs(attempt, 500, 5_000, MIDDLE));
  assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 5_000, 5_000]);
});

test("backoffMs() adds jitter of a quarter to either side", () => {
  assert.equal(backoffMs(0, 1_000, 5_000, 0), 750);
  assert.equal(backoffMs(0, 1_000, 5_000, 1), 1_250);
});

test("backoffMs() is finite for any number of tries", () => {
  fc.assert(
    fc.property(fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
      const wait = backoffMs(attempt, 100, 60_000, random);
      assert.ok(Number.isInteger(wait) && wait >= 75 && wait <= 75_000);
    }),
  );
});
