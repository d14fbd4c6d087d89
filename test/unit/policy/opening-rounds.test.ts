// Proves that one container cannot have a transaction of any size gather, for which all others wait.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import type { NftCommand } from "../../../src/kernel/nfnetlink.ts";
import { OpenAddresses } from "../../../src/policy/table/open-addresses.ts";
import { OpeningRounds } from "../../../src/policy/table/opening-rounds.ts";

const LIFE_MS = 600_000;

function keys(from: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const number = from + index;
    return Buffer.of(10, number >> 16, (number >> 8) & 255, number & 255).toString("latin1");
  });
}

test("a container opens as much at once as it may have open, and others have their turn", async () => {
  let finish: () => void = () => undefined;
  const rounds = new OpeningRounds(async (_commands: readonly NftCommand[]) => {
    await new Promise<void>((resolve) => (finish = resolve));
  });
  const [greedy, other] = [new OpenAddresses("a"), new OpenAddresses("b")];
  const first = rounds.open(greedy, keys(0, 1), LIFE_MS);
  await new Promise((resolve) => setImmediate(resolve));
  const most = rounds.open(greedy, keys(1, LIMITS.policyOpenAddresses), LIFE_MS);
  await assert.rejects(
    rounds.open(greedy, keys(100_000, 1), LIFE_MS) ?? assert.fail(),
    /more than 4096 addresses at once/,
  );
  const others = rounds.open(other, keys(0, 1), LIFE_MS);
  for (const done of [first, most, others]) {
    finish();
    await done;
  }
  assert.deepEqual(
    [greedy.countAt(performance.now()), other.countAt(performance.now())],
    [LIMITS.policyOpenAddresses, 1],
  );
  await assert.rejects(rounds.open(greedy, keys(200_000, LIMITS.policyOpenAddresses + 1), LIFE_MS) ?? assert.fail());
});
