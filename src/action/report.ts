/**
 * Report: the second half of the GitHub Action, after all steps of the job. It ends the recorder and dns11, which hands all containers back to
 * Docker's resolver, and writes the summary. It never fails a job: what it has to tell matters most when the job has failed already.
 */
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { FILES, asRoot, end, pidIn, stateDirOf } from "./place.ts";
import { annotation, isPoliced, readInputs, savedFolder, variable } from "./runner.ts";
import { failingNames, refusedNames, summaryOf } from "./summary.ts";
import type { JobRecord } from "./tally.ts";

/** The runner shows no more of one step. */
const ANNOTATIONS_MAX = 10;
const OPEN_MS = 60_000;

export async function report(): Promise<void> {
  try {
    await reportAll();
  } catch (error) {
    process.stdout.write(annotation("warning", "dns11", (error as Error).message));
  }
}

async function reportAll(): Promise<void> {
  const folder = savedFolder(process.env);
  if (folder === undefined || !existsSync(folder)) return;
  // The record first: it asks dns11 for the rest.
  await endAsOf(folder, FILES.recorder, []);
  await endAsOf(folder, FILES.daemon, asRoot());
  // What another dns11 holds, which serves the machine, is not this job's to open.
  if (isPoliced(process.env) && pidIn(folder, FILES.daemon) !== undefined) openContainers();
  const path = join(folder, FILES.record);
  const record = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as JobRecord) : undefined;
  rmSync(folder, { recursive: true, force: true });
  if (record === undefined) {
    process.stdout.write(annotation("warning", "dns11", "there is no record of this job"));
    return;
  }
  appendFileSync(variable(process.env, "GITHUB_STEP_SUMMARY"), summaryOf(record));
  const warnings = [
    ...failingNames(record).map((each) => ({ ...each, what: "does not resolve in" })),
    ...refusedNames(record).map((each) => ({ ...each, what: "is refused by a policy in" })),
  ];
  for (const { container, name, sentence, what } of warnings.slice(0, ANNOTATIONS_MAX)) {
    process.stdout.write(annotation("warning", `"${name}" ${what} ${container}`, sentence));
  }
}

/** What holds containers to a policy outlives dns11; the machine is to be as it was before the job. */
function openContainers(): void {
  const { program } = readInputs(process.env);
  const engine = process.env["DOCKER_HOST"] ?? "";
  const [command = "", ...args] = [
    ...asRoot(),
    ...(program === "" ? ["dns11"] : [program]),
    ...["cleanup", "--policies", "--state-dir", stateDirOf(process.env)],
    ...(engine === "" ? [] : ["--host", engine]),
  ];
  const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8", timeout: OPEN_MS });
  if (status !== 0)
    process.stdout.write(
      annotation("warning", "dns11", `containers may still be held to policies: ${error?.message ?? stderr}`),
    );
}

async function endAsOf(folder: string, file: string, prefix: readonly string[]): Promise<void> {
  const pid = pidIn(folder, file);
  if (pid !== undefined && !(await end(pid, prefix)))
    process.stdout.write(annotation("warning", "dns11", `process ${pid} (${file}) did not end in time`));
}
