/**
 * A short run of `make chaos`. How quickly a busy machine answers is not judged here, so the tolerance is large; that
 * everybody is answered, by whom it should be, and that nothing is left, is.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { KINDS, type Track } from "./plan.ts";
import { reportOf } from "./report.ts";
import { runChaos } from "./run.ts";

const TOLERANCE_MS = 8_000;
const LENGTH_MS = 40_000;
// All kinds of faults of dns11 come within the time.
const SEED = 3;
// Its first kill leaves it down for four seconds.
const SEED_OF_LONG_KILL = 1;

test("faults of every family at once: who is owed an answer gets one, and nothing is left", async () => {
  const result = await runChaos({ seed: SEED, lengthMs: LENGTH_MS, toleranceMs: TOLERANCE_MS, containers: 4 });
  const report = reportOf(result).join("\n");
  assert.deepEqual(result.violations, [], report);
  assert.deepEqual(result.leftovers, [], report);
  const done = new Set(result.appliedFaults.map(({ fault }) => fault.track));
  assert.deepEqual([...done].toSorted(), (Object.keys(KINDS) as Track[]).toSorted(), report);
  const { byDns11, byDocker } = result.judgement.owed;
  assert.ok(byDns11 > 0 && byDocker > 0, report);
});

test("it would notice: rules that outlive a killed dns11 leave containers without an answer", async () => {
  const result = await runChaos({
    seed: SEED_OF_LONG_KILL,
    lengthMs: 4_000,
    toleranceMs: 1_000,
    containers: 1,
    only: ["kill"],
    // Nobody owns these, so that without a keeper nobody removes them either.
    args: ["--rule-backend", "nft", "--keeper", "off"],
  });
  const silences = result.violations.filter(({ what }) => what.startsWith("no right answer"));
  assert.ok(silences.length > 0, reportOf(result).join("\n"));
});
