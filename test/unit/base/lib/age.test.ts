// Proves that an age has one unit, the largest that still tells it well, in sentences and in columns.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ageText, shortAge } from "../../../../src/base/lib/quantity.ts";

for (const [ms, text, short] of [
  [-1, "0 s", "0s"],
  [8_999, "8 s", "8s"],
  [119_000, "119 s", "119s"],
  [120_000, "2 min", "2m"],
  [7_199_000, "119 min", "119m"],
  [7_200_000, "2 h", "2h"],
  [172_800_000, "2 days", "2d"],
] as const) {
  test(`${ms} ms are ${text}`, () => {
    assert.deepEqual([ageText(ms), shortAge(ms)], [text, short]);
  });
}
