// `make vm`: dns11 on other kernels and Debian releases, in virtual machines. Prints a table of what loads the program that answers in the
// kernel, and one of whole machines. Arguments: names of kernels; without any, all of them.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { tryVerifier } from "./bare-machine.ts";
import { makeCheckout } from "./checkout.ts";
import { KeptRuns, type KeptRun } from "./kept-run.ts";
import { type Kernel, MACHINES, VERIFIERS } from "./machines.ts";
import type { Outcome } from "./outcome.ts";
import { runMachine } from "./whole-machine.ts";

const CHECKOUT = fileURLToPath(new URL("../../..", import.meta.url));
const LOGS = join(CHECKOUT, ".cache", "vm");
const VERIFIER_COLUMNS = ["kernel", "version", "answered, of 1,000 packets", "attached to lo"];
const MACHINE_COLUMNS = [
  ...["machine", "kernel", "docker", "systemd", "rules", "rules gone after SIGKILL", "persist flag", "sock_diag"],
  ...["answers by", "tests", "took", "on"],
];

type Part = Extract<Outcome, { is: "part" }>;
/** Cells; what did not come to be known is undefined. */
type Row = readonly (string | number | undefined)[];

const failures: string[] = [];

function failed(what: string): void {
  failures.push(what);
  console.log(`✖ ${what}`);
}

function printTable(columns: readonly string[], rows: readonly Row[]): void {
  const line = (cells: Row): string => `| ${cells.map((cell) => cell ?? "?").join(" | ")} |`;
  console.log(`\n${[line(columns), `|${" --- |".repeat(columns.length)}`, ...rows.map(line)].join("\n")}\n`);
}

function yesOrNo(is: boolean | undefined): string | undefined {
  return is === undefined ? undefined : is ? "yes" : "no";
}

async function verify(kernel: Kernel): Promise<Row> {
  console.log(`vm: ${kernel.name}: loading the program`);
  const outcome = await tryVerifier(kernel);
  if ("failed" in outcome) {
    failed(`${kernel.name}: ${outcome.failed}`);
    return [kernel.name];
  }
  return [kernel.name, outcome.kernel, outcome.answered, outcome.notAttached ?? "yes"];
}

async function newRun(machine: Kernel, folder: string): Promise<KeptRun> {
  const { name } = machine;
  console.log(`vm: ${name}: running the tests in a machine of its own`);
  const beganMs = performance.now();
  const { outcomes, log } = await runMachine(machine, await makeCheckout(CHECKOUT, machine, folder), folder);
  const seconds = Math.round((performance.now() - beganMs) / 1_000);
  writeFileSync(join(LOGS, `${name}.log`), log);
  return { outcomes, seconds, day: new Date().toISOString().slice(0, 10) };
}

async function tryOn(machine: Kernel, kept: KeptRuns, folder: string): Promise<Row> {
  const { name } = machine;
  const earlier = kept.read(machine);
  if (earlier !== undefined) console.log(`vm: ${name}: as kept in ${LOGS}: remove that to run it again`);
  const run = earlier ?? (await newRun(machine, folder));
  const { outcomes, seconds, day } = run;
  const failedBefore = failures.length;
  const facts = outcomes.find((each) => each.is === "machine");
  const served = outcomes.find((each) => each.is === "served");
  const parts = outcomes.filter((each): each is Part => each.is === "part");
  for (const part of parts) {
    console.log(
      `vm: ${name}: ${part.name}: ${part.passed} passed, ${part.failed.length} failed, ${part.seconds} s inside`,
    );
    for (const what of part.failed) failed(`${name}: ${part.name}: ${what}`);
  }
  if (!outcomes.some((each) => each.is === "end")) failed(`${name}: it did not come to its end: see ${LOGS}`);
  if (failures.length === failedBefore) kept.write(machine, run);
  if (served?.reason != null) console.log(`vm: ${name}: answers by the process: ${served.reason}`);
  const sum = (count: (part: Part) => number): number => parts.reduce((total, part) => total + count(part), 0);
  return [
    name,
    facts?.kernel,
    facts?.docker,
    facts?.systemd,
    served?.rules,
    served?.removedMs == null ? "-" : `${served.removedMs} ms`,
    yesOrNo(served?.persists),
    yesOrNo(served?.listsSockets),
    served?.answers,
    `${sum(({ passed }) => passed)} passed, ${sum(({ failed: wrong }) => wrong.length)} failed`,
    `${seconds} s`,
    day,
  ];
}

const names = process.argv.slice(2);
const known = [...new Set([...VERIFIERS, ...MACHINES].map(({ name }) => name))];
const unknown = names.find((name) => !known.includes(name));
if (unknown !== undefined) {
  console.error(`vm: there is no kernel "${unknown}": ${known.join(", ")}`);
  process.exit(2);
}
const chosen = (all: readonly Kernel[]): readonly Kernel[] =>
  names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
const folder = mkdtempSync(join(tmpdir(), "d11-vm-"));
try {
  const verified: Row[] = [];
  for (const kernel of chosen(VERIFIERS)) verified.push(await verify(kernel));
  if (verified.length > 0) printTable(VERIFIER_COLUMNS, verified);
  const kept = new KeptRuns(CHECKOUT, LOGS);
  const rows: Row[] = [];
  for (const machine of chosen(MACHINES)) rows.push(await tryOn(machine, kept, folder));
  if (rows.length > 0) printTable(MACHINE_COLUMNS, rows);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);
