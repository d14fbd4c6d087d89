// Proves that no container waits for what another one opens, however much that is, but for one transaction with a limit.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import type { NftCommand } from "../../../src/kernel/nfnetlink.ts";
import { OpenAddresses, OpeningRounds } from "../../../src/features/policy/table/open-addresses.ts";
import { POLICY_LIMITS } from "../../../src/features/policy/model/limits.ts";

const LIFE_MS = 600_000;

function keys(from: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const number = from + index;
    return Buffer.of(10, number >> 16, (number >> 8) & 255, number & 255).toString("latin1");
  });
}

interface Transaction {
  readonly commands: number;
  readonly end: (error?: Error) => void;
}

let underWay: Transaction[];
let rounds: OpeningRounds;
let greedy: OpenAddresses;
let other: OpenAddresses;

beforeEach(() => {
  underWay = [];
  [greedy, other] = [new OpenAddresses("a"), new OpenAddresses("b")];
  rounds = new OpeningRounds(async (commands: readonly NftCommand[]) => {
    await new Promise<void>((resolve, reject) => {
      const end = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      underWay.push({ commands: commands.length, end });
    });
  });
});

async function turn(): Promise<void> {
  for (let round = 0; round < 3; round++) await new Promise((resolve) => setImmediate(resolve));
}

/** Ends the transaction that is under way. */
async function endOne(error?: Error): Promise<void> {
  await turn();
  (underWay.shift() ?? assert.fail("nothing is under way")).end(error);
  await turn();
}

function openOf(mirror: OpenAddresses): number {
  return mirror.countAt(performance.now());
}

test("whoever opens very much waits for itself: others are in the next transaction, which has a limit", async () => {
  const all = rounds.open(greedy, keys(0, POLICY_LIMITS.openAddresses), LIFE_MS);
  await turn();
  const others = rounds.open(other, keys(0, 2), LIFE_MS);
  await endOne();
  assert.equal(openOf(greedy), POLICY_LIMITS.openedAtOnce);
  await endOne();
  await others;
  assert.deepEqual([openOf(greedy), openOf(other)], [1.5 * POLICY_LIMITS.openedAtOnce, 2]);
  while (openOf(greedy) < POLICY_LIMITS.openAddresses) await endOne();
  await all;
  assert.deepEqual(underWay, []);
});

test("answers of one container are opened in their order, and each is told when the last of its addresses is open", async () => {
  const told: number[] = [];
  const counts = [1, POLICY_LIMITS.openedAtOnce, 3];
  for (const [index, count] of counts.entries())
    void rounds.open(greedy, keys(1_000 * index, count), LIFE_MS)?.then(() => told.push(index));
  await endOne();
  assert.deepEqual(told, [0]);
  await endOne();
  assert.deepEqual(told, [0, 1, 2]);
});

test("a container opens no more at once than it may have open", async () => {
  const most = rounds.open(greedy, keys(0, POLICY_LIMITS.openAddresses), LIFE_MS);
  await assert.rejects(
    rounds.open(greedy, keys(100_000, 1), LIFE_MS) ?? assert.fail(),
    /more than 4096 addresses at once/,
  );
  while (openOf(greedy) < POLICY_LIMITS.openAddresses) await endOne();
  await most;
  await assert.rejects(rounds.open(greedy, keys(200_000, POLICY_LIMITS.openAddresses + 1), LIFE_MS) ?? assert.fail());
});

test("what fails for one container opens for the others; the rest of its answer is not opened, and the next one is", async () => {
  const failing = rounds.open(greedy, keys(0, 2 * POLICY_LIMITS.openedAtOnce), LIFE_MS);
  const next = rounds.open(greedy, keys(9_000, 1), LIFE_MS);
  const others = rounds.open(other, keys(0, 1), LIFE_MS);
  // Together, then each alone.
  await endOne(new Error("no memory"));
  const failed = assert.rejects(failing ?? assert.fail(), /no memory/);
  await endOne(new Error("no memory"));
  await failed;
  await endOne();
  await others;
  await endOne();
  await next;
  assert.deepEqual([openOf(greedy), openOf(other), underWay.length], [1, 1, 0]);
});
