/** Steps that ask for a round of the event loop at the same time get one each, in their order. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ownRound } from "../../../../src/base/lib/own-round.ts";
import { countRounds } from "../../../support/rig/rounds.ts";

test("each step has a round of its own, in the order of the calls", async () => {
  using rounds = countRounds();
  const log: { readonly step: number; readonly round: number }[] = [];
  await Promise.all(
    [0, 1, 2, 3, 4].map(async (step) => {
      await ownRound();
      log.push({ step, round: rounds.count });
    }),
  );
  assert.deepEqual(
    log.map(({ step }) => step),
    [0, 1, 2, 3, 4],
  );
  assert.equal(new Set(log.map(({ round }) => round)).size, 5);
});
