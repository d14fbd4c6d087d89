// `make vm`: dns11 on other kernels and Debian releases, in virtual machines. Prints a table. Arguments: names of machines, without
// any, all of them; and --quick for fewer tests.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { run, stdoutOf } from "../support/program/command.ts";
import { diskOf, makeDisk } from "./disk.ts";
import { boot } from "./emulator.ts";
import { type ChosenTests, MACHINES, type Machine, TESTS, TESTS_FILE } from "./machines.ts";
import { type Outcome, outcomesIn } from "./outcome.ts";

const CHECKOUT = fileURLToPath(new URL("../../..", import.meta.url));
const CHECKOUT_SIZE = "2G";
const LOGS = join(CHECKOUT, ".cache", "vm");
const FACT_COLUMNS = ["kernel", "docker", "systemd", "rules", "answers by", "rules gone after SIGKILL"] as const;

type Part = Extract<Outcome, { is: "part" }>;

function chosen(words: readonly string[]): readonly Machine[] {
  const unknown = words.find((word) => !MACHINES.some(({ name }) => name === word));
  if (unknown !== undefined) {
    console.error(`vm: there is no machine "${unknown}": ${MACHINES.map(({ name }) => name).join(", ")}`);
    process.exit(2);
  }
  return words.length === 0 ? MACHINES : MACHINES.filter(({ name }) => words.includes(name));
}

/** The program, its packages and its tests, with the Node that runs this. */
async function checkoutDisk(folder: string, tests: readonly ChosenTests[]): Promise<string> {
  const copy = join(folder, "checkout");
  mkdirSync(join(copy, "bin"), { recursive: true });
  for (const path of ["dist", "node_modules", "scripts", "test", "docs", "package.json", "package-lock.json"])
    stdoutOf(await run("cp", ["-r", path, copy], { cwd: CHECKOUT }), "cp");
  stdoutOf(await run("cp", ["-L", process.execPath, join(copy, "bin", "node")]), "cp");
  // That of Debian 11 cannot sleep for ever.
  stdoutOf(await run("sh", ["-c", `cp "$(command -v busybox)" "$1"`, "sh", join(copy, "bin")]), "cp");
  writeFileSync(join(copy, TESTS_FILE), JSON.stringify(tests));
  const image = join(folder, "checkout.ext4");
  await makeDisk(copy, image, CHECKOUT_SIZE);
  rmSync(copy, { recursive: true });
  return image;
}

/** Returns its row, and what failed. */
async function tryOn(machine: Machine, checkout: string, folder: string): Promise<{ row: string; failures: string[] }> {
  console.log(`vm: ${machine.name}: building its disk, if that is not there yet`);
  const disk = await diskOf(machine);
  console.log(`vm: ${machine.name}: booting`);
  const { printed, console: log, seconds } = await boot(disk, checkout, folder);
  mkdirSync(LOGS, { recursive: true });
  writeFileSync(join(LOGS, `${machine.name}.log`), `${printed}\n${log}`);
  const outcomes = outcomesIn(printed);
  const facts = outcomes.find((each) => each.is === "machine");
  const served = outcomes.find((each) => each.is === "served");
  const parts = outcomes.filter((each): each is Part => each.is === "part");
  const failures = parts.flatMap(({ name, failed }) => failed.map((what) => `${machine.name}: ${name}: ${what}`));
  if (!outcomes.some((each) => each.is === "end"))
    failures.push(`${machine.name}: it did not come to its end: see ${LOGS}`);
  if (served?.reason != null) console.log(`vm: ${machine.name}: answers by the process: ${served.reason}`);
  const passed = parts.reduce((sum, part) => sum + part.passed, 0);
  const cells = [
    machine.name,
    facts?.kernel,
    facts?.docker,
    facts?.systemd,
    served?.rules,
    served?.answers,
    served?.removedMs == null ? "-" : `${served.removedMs} ms`,
    `${passed} passed, ${failures.length} failed`,
    `${seconds} s`,
  ];
  for (const { name, passed: count, failed, seconds: took } of parts)
    console.log(`vm: ${machine.name}: ${name}: ${count} passed, ${failed.length} failed, ${took} s`);
  return { row: `| ${cells.map((cell) => cell ?? "?").join(" | ")} |`, failures };
}

const words = process.argv.slice(2);
const machines = chosen(words.filter((word) => word !== "--quick"));
const folder = mkdtempSync(join(tmpdir(), "d11-vm-"));
const rows: string[] = [];
const failures: string[] = [];
try {
  const checkout = await checkoutDisk(folder, TESTS[words.includes("--quick") ? "quick" : "whole"]);
  for (const machine of machines) {
    const tried = await tryOn(machine, checkout, folder);
    rows.push(tried.row);
    failures.push(...tried.failures);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`\n| machine | ${FACT_COLUMNS.join(" | ")} | tests | took |`);
console.log(`|${" --- |".repeat(FACT_COLUMNS.length + 3)}`);
for (const row of rows) console.log(row);
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);
