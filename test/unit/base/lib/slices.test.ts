/** Long work lets other work run in between, a millisecond at a time, and short work is one step. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { gatherInSlices, inSlices } from "../../../../src/base/lib/slices.ts";
import { countRounds } from "../../../support/rig/rounds.ts";

test("few pieces are one step, and more let other work run in between", async () => {
  const log: string[] = [];
  const long = inSlices(pieces(20, () => log.push("piece")));
  log.push("other");
  assert.equal(await long, 20);
  assert.equal(log.indexOf("other"), 8, "the first pieces are one step, then other work runs");
  let short = 0;
  const done = inSlices(pieces(8, () => short++));
  assert.equal(short, 8);
  assert.equal(await done, 8);
  assert.equal(await inSlices([]), 0);
});

test("after the first pieces a slice ends after a millisecond, and two works at once do not share a round", async () => {
  using rounds = countRounds();
  const seen: number[] = [];
  const log = (): void => void seen.push(rounds.count);
  await Promise.all([inSlices(pieces(20, log)), inSlices(pieces(20, log), 1)]);
  assert.equal(seen.length, 40);
  // All pieces of the first step are in one round: eight of one, and one of the other.
  assert.equal(new Set(seen.slice(0, 9)).size, 1);
  assert.equal(new Set(seen.slice(9)).size, 31, "each further piece takes a millisecond, and so a round");
});

test("what the pieces yield is gathered", async () => {
  const many = Array.from({ length: 20 }, (_, index) => index);
  assert.deepEqual(await gatherInSlices(many), many);
  assert.deepEqual(await gatherInSlices([1, undefined, 3], 1), [1, 3]);
});

/** A piece may not be so short that several fit into one slice. */
function* pieces(count: number, work: () => void): Generator<void> {
  for (let index = 0; index < count; index++) {
    for (const endMs = performance.now() + 1; performance.now() < endMs;);
    yield work();
  }
}
