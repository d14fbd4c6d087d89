/**
 * dns11 doctor: finds what breaks DNS in one container or in all running ones, and suggests fixes.
 */
import type { Command } from "commander";

import type { Diagnosis, Report } from "../src/doctor/doctor.ts";
import type { Finding } from "../src/base/model/finding.ts";
import { type ProjectOptions, addProjectOption } from "./container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption } from "./control-options.ts";
import { DOCTOR_EXIT, errorText } from "./exit-code.ts";
import { onThisPlatform } from "./platform.ts";
import { printableLines } from "./printable.ts";
import { table } from "./table.ts";

interface DoctorOptions extends ControlOptions, ProjectOptions {
  readonly fix?: boolean;
}

export function addDoctor(program: Command): void {
  const command = program
    .command("doctor [container]")
    .summary("Find what breaks DNS, and suggest fixes")
    .description("Find what breaks DNS in one container or in all, and suggest fixes; works without a running dns11")
    .option("--fix", "repair only dns11's own rules, sockets, leftovers and stale conntrack entries");
  addJsonOption(addControlOptions(addProjectOption(command))).action(
    async (container: string | undefined, options: DoctorOptions) =>
      await exitUncheckedOnError(async () => await runDoctor(container, options)),
  );
}

/** An error on the way means that the doctor could not check, whatever the error is. */
export async function exitUncheckedOnError(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    process.stderr.write(`${errorText(error)}\n`);
    process.exitCode = DOCTOR_EXIT.unchecked;
  }
}

/** A problem takes precedence over a check that could not be done. */
export function setExitCode(findings: readonly Finding[]): void {
  const states = new Set(findings.map(({ state }) => state));
  if (states.has("problem")) process.exitCode = DOCTOR_EXIT.problems;
  else if (states.has("unknown")) process.exitCode = DOCTOR_EXIT.unchecked;
}

export function findingsTable(findings: readonly Finding[]): string {
  const rows = findings.map(({ state, what, detail, remedy }) => [
    state,
    what,
    `${detail}${remedy === undefined ? "" : `. ${remedy}`}`,
  ]);
  return table(["STATE", "CHECK", "FINDING"], rows);
}

async function runDoctor(
  container: string | undefined,
  { host, stateDir, fix, json, project }: DoctorOptions,
): Promise<void> {
  const { diagnose } = await onThisPlatform(async () => await import("../src/doctor/doctor.ts"));
  const { cleanup } = await onThisPlatform(async () => await import("../src/run/cleanup.ts"));
  const diagnosis = await diagnose({
    hostFlag: host,
    stateDir,
    container,
    project,
    ...(fix === true && { cleanUp: async (onlyId) => await cleanup(stateDir, host, onlyId) }),
  });
  const all = [diagnosis.machine, ...diagnosis.containers];
  const findings = all.flatMap((report) => report.findings);
  process.stdout.write(
    json === true ? `${JSON.stringify(diagnosis)}\n` : diagnosisText(diagnosis, container !== undefined),
  );
  setExitCode(findings);
}

/** All findings of a container that was named; only those that are not ok if there are many containers. */
function diagnosisText({ machine, containers }: Diagnosis, showsAll: boolean): string {
  const reports = [reportText(machine, true), ...containers.map((report) => reportText(report, showsAll))];
  return `${reports.join("\n")}\n${summary([machine, ...containers])}\n`;
}

function reportText({ subject, findings, did, left }: Report, showsAll: boolean): string {
  const shown = showsAll ? findings : findings.filter(({ state }) => state !== "ok");
  const passed = findings.length - shown.length;
  const count = passed === findings.length ? `${passed}` : `${passed} of ${findings.length}`;
  const lines = [
    printableLines(did.map((sentence) => `fixed: ${sentence}`)),
    printableLines(left.map((sentence) => `not fixed: ${sentence}`)),
    ...(passed === 0 ? [] : [`${count} ${findings.length === 1 ? "check" : "checks"} passed\n`]),
  ];
  return `${subject}\n${shown.length === 0 ? "" : findingsTable(shown)}${lines.join("")}`;
}

function summary(reports: readonly Report[]): string {
  const findings = reports.flatMap((report) => report.findings);
  const words = [
    ["problem", "problems"],
    ["warning", "warnings"],
    ["unknown", "not checked"],
  ] as const;
  const counts = words.flatMap(([state, plural]) => {
    const count = findings.filter((each) => each.state === state).length;
    if (count === 0) return [];
    return [`${count} ${count === 1 && state !== "unknown" ? state : plural}`];
  });
  return counts.length === 0 ? "healthy" : counts.join(", ");
}
