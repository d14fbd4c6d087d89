// Proves the token bucket: a burst, then the rate, and never more saved than the burst.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RateLimit } from "../../../../src/base/lib/rate-limit.ts";

test("a burst, and then as many as the rate allows", () => {
  let nowMs = 1_000;
  const limit = new RateLimit({ burst: 3, perSecond: 10 }, () => nowMs);
  const taken = (): number => Array.from({ length: 10 }, () => limit.take()).filter(Boolean).length;
  assert.equal(taken(), 3);
  nowMs += 99;
  assert.equal(taken(), 0);
  nowMs += 101;
  assert.equal(taken(), 2);
  nowMs += 3_600_000;
  assert.equal(taken(), 3);
  nowMs -= 60_000;
  assert.equal(taken(), 0, "a clock that was put back brings nothing, and takes nothing");
});
