/**
 * dns11 doctor: finds what breaks DNS in one container or in all running ones, and suggests fixes.
 */
import type { Command } from "commander";

import type { Bundle } from "../src/doctor/bundle/bundle.ts";
import type { Finding, DoctorLine } from "../src/base/model/finding.ts";
import { type ProjectOptions, addProjectOption } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption } from "./options/control-options.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { setExitCode } from "./process/exit-code.ts";
import { NewFile } from "./process/new-file.ts";
import { inOwnProcess } from "./process/own-process.ts";
import { doctorModules, hostModules } from "./modules/platform.ts";
import { diagnosisText } from "./text/doctor-text.ts";
import { jsonLine, printableText } from "./text/printable.ts";
import { enterRootless } from "./process/rootless.ts";
import { displayOf } from "./text/terminal.ts";
import { versionReport } from "./process/build.ts";

const KIB = 1024;
/** Only its owner can read it. */
const BUNDLE_MODE = 0o600;

interface DoctorOptions extends ControlOptions, ProjectOptions {
  readonly fix?: boolean;
  readonly all?: boolean;
  readonly jsonLines?: boolean;
  readonly bundle?: string;
  readonly redact: boolean;
}

export function addDoctor(program: Command): void {
  const command = program
    .command("doctor [container]")
    .summary("Find what breaks DNS, and suggest fixes")
    .description("Find what breaks DNS in one container or in all, and suggest fixes; works without a running dns11")
    .option("-a, --all", "also show the checks that passed")
    .option("--json-lines", "print each finding as JSON as soon as it is known, and the problems at the end")
    .option("--bundle <file>", "also write what a bug report needs to a new file, a .tar.gz archive")
    .option("--no-redact", "with --bundle, keep names and addresses as they are")
    .option("--fix", "repair only dns11's own rules, sockets, leftovers and stale conntrack entries");
  addJsonOption(addControlOptions(addProjectOption(command))).action(
    inOwnProcess(async (container: string | undefined, options: DoctorOptions) => await runDoctor(container, options)),
  );
}

async function runDoctor(container: string | undefined, options: DoctorOptions): Promise<void> {
  const { host, stateDir, fix, json, jsonLines, all, bundle, project } = options;
  // First of all: it may start this program once more.
  const notEntered = await notEnteredFault(options);
  const { bundleOf, diagnose } = await doctorModules();
  const file = bundle === undefined ? undefined : new NewFile(bundle, BUNDLE_MODE);
  const machine = { hostFlag: host, stateDir, ...(notEntered !== undefined && { notEntered }) };
  const diagnosis = await diagnose({
    ...machine,
    container,
    project,
    ...(jsonLines === true && { onFindings: printLines }),
    ...(fix === true && {
      cleanUp: async (onlyId) => await (await hostModules()).cleanup(stateDir, host, { only: onlyId }),
    }),
  });
  const findings = [diagnosis.machine, ...diagnosis.containers].flatMap((report) => report.findings);
  if (jsonLines === true) printLine({ problems: diagnosis.problems });
  else if (json === true) process.stdout.write(jsonLine(diagnosis));
  else {
    const showsServed = container !== undefined;
    process.stdout.write(
      diagnosisText(diagnosis, { showsAll: all === true, showsServed, display: displayOf(process.stdout) }),
    );
  }
  setExitCode(findings);
  if (file === undefined) return;
  const isRedacted = options.redact;
  const text = diagnosisText(diagnosis, { showsAll: true });
  const version = versionReport();
  const content = await bundleOf({ ...machine, version, diagnosis, diagnosisText: text, isRedacted });
  file.write(content.archive);
  process.stderr.write(bundleText(bundle ?? "", content, isRedacted));
}

function printLines(subject: string, findings: readonly Finding[]): void {
  for (const finding of findings) printLine({ subject, finding });
}

function printLine(line: DoctorLine): void {
  process.stdout.write(jsonLine(line));
}

/** What keeps a user from entering their rootless engine; the doctor reports it like any other problem. */
async function notEnteredFault(options: ControlOptions): Promise<Fault | undefined> {
  try {
    await enterRootless(options);
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

function bundleText(path: string, { files, archive }: Bundle, isRedacted: boolean): string {
  const names = isRedacted ? "names and public addresses are replaced" : "names and addresses are not replaced";
  const size = `${files} files, ${Math.ceil(archive.length / KIB)} KiB`;
  return printableText(`wrote ${path} (${size}); ${names}: read it before you share it\n`);
}
