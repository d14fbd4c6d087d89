/**
 * Report: the second half of the GitHub Action, after all steps of the job. It ends the recorder and dns11, which hands all containers back to
 * Docker's resolver, and writes the summary. It never fails a job: what it has to tell matters most when the job has failed already.
 */
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { FILES, asRoot, isRunning, pidIn } from "./place.ts";
import { annotation, savedFolder, variable } from "./runner.ts";
import { failingNames, summaryOf } from "./summary.ts";
import type { JobRecord } from "./tally.ts";

/** The runner shows no more of one step. */
const ANNOTATIONS_MAX = 10;
/** dns11 may wait for queries under way. */
const END_MS = 30_000;
const POLL_MS = 50;

async function report(): Promise<void> {
  const folder = savedFolder(process.env);
  if (folder === undefined || !existsSync(folder)) return;
  // The record first: it asks dns11 for the rest.
  await end(pidIn(folder, FILES.recorder), "the recorder", []);
  await end(pidIn(folder, FILES.daemon), "dns11", asRoot());
  const path = join(folder, FILES.record);
  if (!existsSync(path)) {
    process.stdout.write(annotation("warning", "dns11", "there is no record of this job"));
    return;
  }
  const record = JSON.parse(readFileSync(path, "utf8")) as JobRecord;
  appendFileSync(variable(process.env, "GITHUB_STEP_SUMMARY"), summaryOf(record));
  for (const { container, name, sentence } of failingNames(record).slice(0, ANNOTATIONS_MAX)) {
    process.stdout.write(annotation("warning", `"${name}" does not resolve in ${container}`, sentence));
  }
  rmSync(folder, { recursive: true, force: true });
}

async function end(pid: number | undefined, what: string, prefix: readonly string[]): Promise<void> {
  if (pid === undefined || !isRunning(pid)) return;
  // That of the shell: not every system has the program.
  const [command, ...args] = [...prefix, "sh", "-c", `kill -TERM ${pid}`];
  spawnSync(command, args, { stdio: "ignore" });
  const endMs = performance.now() + END_MS;
  while (isRunning(pid)) {
    if (performance.now() > endMs) {
      process.stdout.write(annotation("warning", "dns11", `${what} did not end within ${END_MS / 1000} seconds`));
      return;
    }
    await sleep(POLL_MS);
  }
}

try {
  await report();
} catch (error) {
  process.stdout.write(annotation("warning", "dns11", (error as Error).message));
}
