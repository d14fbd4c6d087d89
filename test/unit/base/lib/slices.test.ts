/** Long work lets other work run in between, and short work is one step. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { inSlices } from "../../../../src/base/lib/slices.ts";

test("few pieces are one step, and more let other work run in between", async () => {
  const log: string[] = [];
  const long = inSlices(pieces(20, log));
  log.push("other");
  assert.equal(await long, 20);
  assert.ok(log.indexOf("other") >= 8, "the first pieces are one step");
  assert.ok(log.indexOf("other") < 20, "then other work runs");
  const short: string[] = [];
  const done = inSlices(pieces(8, short));
  assert.equal(short.length, 8);
  assert.equal(await done, 8);
  assert.equal(await inSlices([]), 0);
});

function* pieces(count: number, log: string[]): Generator<void> {
  for (let index = 0; index < count; index++) {
    // A piece may not be so short that all of them fit into one slice.
    for (const endMs = performance.now() + 1; performance.now() < endMs;);
    yield void log.push(`${index}`);
  }
}
