/**
 * Place: the files and processes that the halves of a step share, and how to find the dns11 of the job.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { ControlClient } from "../api/control-client.ts";
import { locateControl } from "../api/locate.ts";
import { defaultStateDir } from "../api/state-paths.ts";
import type { Environment } from "./runner.ts";

/** What is in the folder of a step. */
export const FILES = {
  /** What dns11 prints. */
  log: "dns11.log",
  /** The process that records, as a number. */
  recorder: "recorder.pid",
  /** The process of dns11; until that is known, the command that has started it. */
  daemon: "dns11.pid",
  /** The policies of the job, where their modes are not those of its file. */
  policy: "policy.yaml",
  /** Written by the recorder at its end. */
  record: "record.json",
} as const;

const ROOT = 0;
/** dns11 may wait for queries under way. */
const END_MS = 30_000;
const POLL_MS = 50;

/** A command that needs root gets this before it. The runners of GitHub allow sudo without a password. */
export function asRoot(user = process.getuid?.() ?? ROOT): readonly string[] {
  return user === ROOT ? [] : ["sudo", "-n"];
}

/** The directory of instances, as dns11 itself finds it: that is started by root. */
export function stateDirOf(env: Environment): string {
  return env["DNS11_STATE_DIR"] ?? defaultStateDir(undefined, env, ROOT);
}

export async function clientOf(env: Environment): Promise<ControlClient> {
  return new ControlClient(await locateControl(stateDirOf(env), undefined));
}

export function pidIn(folder: string, name: string): number | undefined {
  const path = join(folder, name);
  if (!existsSync(path)) return undefined;
  const pid = Number(readFileSync(path, "utf8"));
  return Number.isSafeInteger(pid) && pid > 1 ? pid : undefined;
}

/** False if it still runs afterwards. `prefix` is the beginning of a command by who may end it. */
export async function end(pid: number, prefix: readonly string[]): Promise<boolean> {
  if (!isRunning(pid)) return true;
  // That of the shell: not every system has the program.
  const [command, ...args] = [...prefix, "sh", "-c", `kill -TERM ${pid}`];
  spawnSync(command, args, { stdio: "ignore" });
  const endMs = performance.now() + END_MS;
  while (isRunning(pid)) {
    if (performance.now() > endMs) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/** Whether a process is another one, or was started by it. Where processes of others are hidden, nobody knows. */
export function isStartedBy(pid: number, ancestor: number): boolean {
  for (let each = pid; each !== ancestor;) {
    const parent = /^PPid:\s+(\d+)$/m.exec(statusOf(each))?.[1];
    if (parent === undefined) return isRunning(ancestor);
    if (Number(parent) <= 1) return false;
    each = Number(parent);
  }
  return true;
}

/** A process of another user counts, too. */
function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(statusOf(pid));
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}
