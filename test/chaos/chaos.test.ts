/**
 * A short run of `make chaos`. The tolerance is large, because response times on a busy machine do not matter here; the
 * tests check that every expected answer arrives, from the expected server, and that nothing is left.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { KINDS, type Track } from "./plan.ts";
import { reportOf } from "./report.ts";
import { runChaos } from "./run.ts";

const TOLERANCE_MS = 8_000;
const LENGTH_MS = 32_000;
// The plan of this seed has all kinds of faults within the time.
const SEED = 1453;
// Its first kill keeps dns11 down for four seconds.
const SEED_OF_LONG_KILL = 1;

test("faults of all tracks at once: every expected answer arrives, and nothing is left", async () => {
  const result = await runChaos({
    ...{ seed: SEED, lengthMs: LENGTH_MS, toleranceMs: TOLERANCE_MS },
    ...{ containers: 4, hasWitness: true },
  });
  const report = reportOf(result).join("\n");
  // As text, which the runner prints whole after the report.
  assert.equal(result.violations.map(({ container, what }) => `${container}: ${what}`).join("; "), "", report);
  assert.deepEqual(result.leftovers, [], report);
  const done = new Set(result.appliedFaults.map(({ fault }) => fault.track));
  assert.deepEqual([...done].toSorted(), (Object.keys(KINDS) as Track[]).toSorted(), report);
  const { byDns11, byDocker } = result.judgement.expected;
  assert.ok(byDns11 > 0 && byDocker > 0, report);
});

test("the test detects rules that outlive a killed dns11 and leave containers without answers", async () => {
  const result = await runChaos({
    seed: SEED_OF_LONG_KILL,
    lengthMs: 4_000,
    toleranceMs: 1_000,
    containers: 1,
    only: ["kill"],
    // These rules are not bound to a process, so without a keeper nothing removes them.
    settings: { "rule-backend": "nft", keeper: "off" },
  });
  const silences = result.violations.filter(({ what }) => what.startsWith("no correct answer"));
  assert.ok(silences.length > 0, reportOf(result).join("\n"));
});
