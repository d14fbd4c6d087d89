// Proves that failures are retried with backoff, and successes are not.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Retry } from "../../../../src/base/lib/retry.ts";
import { Clock } from "../../support/clock.ts";

test("each failure is retried later than the one before, and a success resets the delay", () => {
  using clock = new Clock();
  let tries = 0;
  const retry = new Retry(() => tries++, 1_000, 8_000);
  const waits: number[] = [];
  for (let failure = 0; failure < 5; failure++) {
    retry.note(true);
    const before = tries;
    let waitedMs = 0;
    for (; tries === before; waitedMs += 100) clock.advance(100);
    waits.push(waitedMs);
  }
  assert.ok(
    waits.every((wait, index) => wait <= 1_250 * 2 ** Math.min(index, 3) + 100),
    waits.join(),
  );
  assert.ok((waits[4] ?? 0) > (waits[0] ?? 0), waits.join());
  retry.note(false);
  clock.advance(60_000);
  assert.equal(tries, 5);
  retry.note(true);
  clock.advance(1_300);
  assert.equal(tries, 6);
});

test("nothing is retried after close()", () => {
  using clock = new Clock();
  const retry = new Retry(() => assert.fail(), 10, 100);
  retry.note(true);
  retry.close();
  clock.advance(1_000);
  assert.equal(clock.pending, 0);
});

test("a failure that is reported while a try is due puts it off: there is one try, not two", () => {
  using clock = new Clock();
  let tries = 0;
  const retry = new Retry(() => tries++, 100, 100);
  retry.note(true);
  retry.note(true);
  assert.equal(clock.pending, 1);
  clock.advance(1_000);
  assert.equal(tries, 1);
});
