// Proves that the order of addresses is uniformly random.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { Shuffler } from "../../../../src/query/lookup/own-records.ts";

test("order() has every number below the count once, for any seed and any counts before", () => {
  fc.assert(
    fc.property(fc.integer(), fc.array(fc.nat({ max: 300 }), { maxLength: 10 }), (seed, counts) => {
      const shuffler = new Shuffler(seed);
      for (const count of counts) {
        const order = [...shuffler.order(count).subarray(0, count)].toSorted((a, b) => a - b);
        assert.deepEqual(order, [...order.keys()]);
        assert.equal(order.length, count);
      }
    }),
  );
});

test("each of the six orders of three is about as frequent as the others", () => {
  const shuffler = new Shuffler(20_250_101);
  const seen = new Map<string, number>();
  for (let round = 0; round < 6_000; round++) {
    const order = shuffler.order(3).subarray(0, 3).join("");
    seen.set(order, (seen.get(order) ?? 0) + 1);
  }
  assert.equal(seen.size, 6);
  // Five standard deviations of 1,000 expected draws in 6,000 are 144.
  for (const [order, times] of seen) assert.ok(Math.abs(times - 1_000) < 144, `${order} came ${times} times`);
});

test("a seed of zero works, too", () => {
  const shuffler = new Shuffler(0);
  const orders = new Set(Array.from({ length: 50 }, () => shuffler.order(4).subarray(0, 4).join("")));
  assert.ok(orders.size > 10);
});

test("equal seeds give equal orders, and others give others", () => {
  assert.equal(draw(7), draw(7));
  assert.notEqual(draw(7), draw(8));
});

function draw(seed: number): string {
  const shuffler = new Shuffler(seed);
  return Array.from({ length: 20 }, () => shuffler.order(10).subarray(0, 10).join("")).join(" ");
}
