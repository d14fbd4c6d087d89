// Proves that concurrency is limited, and that results keep the order of the items.

import assert from "node:assert/strict";
import { setImmediate as nextRound } from "node:timers/promises";
import { test } from "node:test";

import { mapConcurrent } from "../../../../src/base/lib/async.ts";

test("limited concurrency, in order", async () => {
  let running = 0;
  let most = 0;
  const results = await mapConcurrent([3, 1, 2, 0], 2, async (rounds) => {
    most = Math.max(most, ++running);
    for (let round = 0; round < rounds; round++) await nextRound();
    running--;
    return rounds * 10;
  });
  assert.deepEqual([results, most], [[30, 10, 20, 0], 2]);
  assert.deepEqual(await mapConcurrent([], 2, () => Promise.reject(new Error("never"))), []);
});
