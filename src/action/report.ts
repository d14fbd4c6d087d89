/**
 * Report: the second half of the GitHub Action, after all steps of the job. It ends the recorder and dns11, which hands all containers back to
 * Docker's resolver, and writes the summary. It never fails a job: what it has to tell matters most when the job has failed already.
 */
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { FILES, asRoot, end, pidIn } from "./place.ts";
import { annotation, savedFolder, variable } from "./runner.ts";
import { failingNames, summaryOf } from "./summary.ts";
import type { JobRecord } from "./tally.ts";

/** The runner shows no more of one step. */
const ANNOTATIONS_MAX = 10;

async function report(): Promise<void> {
  const folder = savedFolder(process.env);
  if (folder === undefined || !existsSync(folder)) return;
  // The record first: it asks dns11 for the rest.
  await endAsOf(folder, FILES.recorder, []);
  await endAsOf(folder, FILES.daemon, asRoot());
  const path = join(folder, FILES.record);
  const record = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as JobRecord) : undefined;
  rmSync(folder, { recursive: true, force: true });
  if (record === undefined) {
    process.stdout.write(annotation("warning", "dns11", "there is no record of this job"));
    return;
  }
  appendFileSync(variable(process.env, "GITHUB_STEP_SUMMARY"), summaryOf(record));
  for (const { container, name, sentence } of failingNames(record).slice(0, ANNOTATIONS_MAX)) {
    process.stdout.write(annotation("warning", `"${name}" does not resolve in ${container}`, sentence));
  }
}

async function endAsOf(folder: string, file: string, prefix: readonly string[]): Promise<void> {
  const pid = pidIn(folder, file);
  if (pid !== undefined && !(await end(pid, prefix)))
    process.stdout.write(annotation("warning", "dns11", `process ${pid} (${file}) did not end in time`));
}

try {
  await report();
} catch (error) {
  process.stdout.write(annotation("warning", "dns11", (error as Error).message));
}
