// Proves that a pool is shared: no share exceeds its limit, and a full pool does not keep newcomers out.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Pool } from "../../../../src/base/lib/share.ts";

test("a share ends at its limit, and returned amounts are available again", () => {
  const share = new Pool({ whole: 100, each: 10, always: 2 }).open();
  assert.ok(share.take(10));
  assert.equal(share.take(1), false);
  assert.equal(share.taken, 10);
  share.give(4);
  assert.ok(share.has(4) && !share.has(5) && share.take(4));
});

test("an empty pool still serves shares that hold little", () => {
  const pool = new Pool({ whole: 20, each: 10, always: 2 });
  const [one, other, late] = [pool.open(), pool.open(), pool.open()];
  assert.ok(one.take(10) && other.take(10));
  assert.ok(late.take(1) && late.take(1));
  assert.equal(late.take(1), false);
  assert.equal(pool.taken, 22);
  one.give(10);
  assert.ok(late.take(8));
  assert.equal(late.take(1), false, "more than each may have");
});

test("an amount is taken completely or not at all", () => {
  const pool = new Pool({ whole: 8, each: 10, always: 0 });
  const share = pool.open();
  assert.equal(share.take(9), false);
  assert.deepEqual([share.taken, pool.taken], [0, 0]);
});
