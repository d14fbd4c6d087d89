// make chaos: random faults while every container queries its own name all the time. MINUTES=N sets the duration,
// SEED=N the plan, SUITE=trixie or forky another engine. Exit code 1 if a container did not get an expected answer,
// if dns11 exited unexpectedly, or if anything was left.

import { writeFileSync } from "node:fs";

import type { Suite } from "../support/engine/suite.ts";
import { KINDS, type Kind } from "./plan.ts";
import { reportOf } from "./report.ts";
import { runChaos } from "./run.ts";

const TOLERANCE_MS = 1_000;
const CONTAINERS = 5;
const MINUTE_MS = 60_000;
const USAGE = "make chaos [MINUTES=10] [SEED=1] [SUITE=bookworm|trixie|forky] [ONLY=kind,kind] [LOG=file]";

const { MINUTES = "10", SEED = "1", SUITE = "bookworm", ONLY = "", LOG } = process.env;
const minutes = Number(MINUTES);
const seed = Number(SEED);
const only = ONLY.split(/[ ,]+/).filter((word) => word !== "");
const kinds: readonly Kind[] = Object.values(KINDS).flat();
if (!(minutes > 0) || !Number.isInteger(seed) || !isSuite(SUITE) || !only.every(isKind)) {
  console.error(`${USAGE}\nkinds: ${kinds.join(" ")}`);
  process.exit(2);
}
const result = await runChaos({
  seed,
  lengthMs: minutes * MINUTE_MS,
  toleranceMs: TOLERANCE_MS,
  containers: CONTAINERS,
  suite: SUITE,
  only: only.filter(isKind),
  hasWitness: true,
  print: (line) => console.log(line),
});
console.log(`\n${reportOf(result).join("\n")}`);
if (LOG !== undefined) {
  writeFileSync(LOG, result.log);
  writeFileSync(`${LOG}.dockerd`, result.engineLog);
}
process.exit(result.violations.length === 0 && result.leftovers.length === 0 ? 0 : 1);

function isSuite(word: string): word is Suite {
  return ["bookworm", "trixie", "forky"].includes(word);
}

function isKind(word: string): word is Kind {
  return kinds.some((kind) => kind === word);
}
