/**
 * dns11 doctor: what breaks DNS in a container, or in all that run, and what to do about it.
 */
import type { Command } from "commander";

import type { Diagnosis, Report } from "../src/doctor/doctor.ts";
import type { Finding } from "../src/base/model/finding.ts";
import { type ControlOptions, addControlOptions, addJsonOption } from "./control-options.ts";
import { DOCTOR_EXIT, errorText } from "./exit-code.ts";
import { onThisPlatform } from "./platform.ts";
import { printableLines } from "./printable.ts";
import { table } from "./table.ts";

interface DoctorOptions extends ControlOptions {
  readonly fix?: boolean;
}

export function addDoctor(program: Command): void {
  const command = program
    .command("doctor [container]")
    .description("Find what breaks DNS in a container, or in all that run, and say what to do about it")
    .option("--fix", "repair what is dns11's own, and say what was done and what was left");
  addJsonOption(addControlOptions(command)).action(
    async (container: string | undefined, options: DoctorOptions) =>
      await exitUncheckedOnError(async () => await runDoctor(container, options)),
  );
}

/** To a doctor, whatever went wrong on the way means that it could not look. */
export async function exitUncheckedOnError(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    process.stderr.write(`${errorText(error)}\n`);
    process.exitCode = DOCTOR_EXIT.unchecked;
  }
}

/** A problem counts for more than what could not be looked at. */
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
  return table(["STATE", "WHAT", "FOUND"], rows);
}

async function runDoctor(container: string | undefined, { host, stateDir, fix, json }: DoctorOptions): Promise<void> {
  const { diagnose } = await onThisPlatform(async () => await import("../src/doctor/doctor.ts"));
  const { cleanup } = await onThisPlatform(async () => await import("../src/run/cleanup.ts"));
  const diagnosis = await diagnose({
    hostFlag: host,
    stateDir,
    container,
    ...(fix === true && { cleanUp: async (onlyId) => await cleanup(stateDir, host, onlyId) }),
  });
  const all = [diagnosis.machine, ...diagnosis.containers];
  const findings = all.flatMap((report) => report.findings);
  process.stdout.write(
    json === true ? `${JSON.stringify(diagnosis)}\n` : diagnosisText(diagnosis, container !== undefined),
  );
  setExitCode(findings);
}

/** Of many containers only what is not well is shown; of one that was named, everything. */
function diagnosisText({ machine, containers }: Diagnosis, isWhole: boolean): string {
  const reports = [reportText(machine, true), ...containers.map((report) => reportText(report, isWhole))];
  return `${reports.join("\n")}\n${summary([machine, ...containers])}\n`;
}

function reportText({ subject, findings, did, left }: Report, isWhole: boolean): string {
  const shown = isWhole ? findings : findings.filter(({ state }) => state !== "ok");
  const well = findings.length - shown.length;
  const lines = [
    printableLines(did.map((sentence) => `done: ${sentence}`)),
    printableLines(left.map((sentence) => `left: ${sentence}`)),
    ...(well === 0 ? [] : [`well: ${well} of ${findings.length} looks\n`]),
  ];
  return `${subject}\n${shown.length === 0 ? "" : findingsTable(shown)}${lines.join("")}`;
}

function summary(reports: readonly Report[]): string {
  const findings = reports.flatMap((report) => report.findings);
  const words = [
    ["problem", "problems"],
    ["warning", "warnings"],
    ["unknown", "could not be looked at"],
  ] as const;
  const counts = words.flatMap(([state, plural]) => {
    const count = findings.filter((each) => each.state === state).length;
    if (count === 0) return [];
    return [`${count} ${count === 1 && state !== "unknown" ? state : plural}`];
  });
  return counts.length === 0 ? "healthy" : counts.join(", ");
}
