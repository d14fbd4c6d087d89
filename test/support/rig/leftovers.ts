/**
 * What a test leaves in the kernel and on disk, as plain data, and its removal. Being data, another process can clean
 * up after a test that was killed. Nothing here needs a daemon: a half-started or stuck engine is removed like a
 * healthy one.
 */
import { readdirSync, readlinkSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { check } from "../program/command.ts";
import { waitFor } from "./wait.ts";
import { textOf } from "./text-of.ts";

export interface Leftovers {
  /** Also the name of the network namespace and of the control group. */
  readonly id: string;
  readonly folder?: string | undefined;
  /** Of a dns11, which is in no namespace of its own: its command line and that of its keeper name this folder. */
  readonly stateDir?: string | undefined;
}

const CGROUP_ROOT = "/sys/fs/cgroup";

export function netnsPathOf(id: string): string {
  return `/run/netns/${id}`;
}

/**
 * The engine's processes run in its network namespace, those of its containers in or below its control groups. The machine
 * has hundreds of others, so each is read as little as possible.
 */
export function processesOf({ id, stateDir }: Leftovers): number[] {
  const netns = inodeOf(netnsPathOf(id));
  const members = new Set(cgroupsNamed(id).flatMap(membersOf));
  const isOurs = (pid: number): boolean =>
    members.has(pid) ||
    (netns !== undefined && netnsInodeOf(pid) === netns) ||
    (stateDir !== undefined && wordsOf(pid).some((word) => word === stateDir || word.startsWith(`${stateDir}/`)));
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return pids.filter((pid) => pid !== process.pid && isOurs(pid) && !isZombie(pid));
}

export function cgroupsNamed(id: string): string[] {
  const hierarchies = [CGROUP_ROOT, ...foldersIn(CGROUP_ROOT)];
  return hierarchies.map((folder) => `${folder}/${id}`).filter((folder) => inodeOf(folder) !== undefined);
}

export async function removeLeftovers(leftovers: Leftovers): Promise<void> {
  // A process that forks meanwhile is found in the next round.
  await waitFor(`the processes of ${leftovers.id} to end`, () => {
    const pids = processesOf(leftovers);
    for (const pid of pids) endProcess(pid);
    if (pids.length === 0) return true;
    // The process of a paused container is frozen; it dies once it is thawed.
    for (const group of cgroupsNamed(leftovers.id)) thaw(group);
    return undefined;
  });
  if (inodeOf(netnsPathOf(leftovers.id)) !== undefined) await check("ip", ["netns", "delete", leftovers.id]);
  // The mounts go with the last process of their private mount namespace; the kernel may do that a little later.
  if (leftovers.folder !== undefined) {
    await rm(leftovers.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 20 });
  }
  await waitFor(`the control groups of ${leftovers.id} to be removed`, () => {
    const groups = cgroupsNamed(leftovers.id);
    return groups.map(removeCgroup).every((gone) => gone) ? true : undefined;
  });
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has exited in the meantime.
  }
}

function thaw(folder: string): void {
  for (const [file, word] of [
    ["freezer.state", "THAWED"],
    ["cgroup.freeze", "0"],
  ] as const) {
    try {
      writeFileSync(join(folder, file), word, { flag: "r+" });
    } catch {
      // The other cgroup version, or a hierarchy without a freezer.
    }
  }
  for (const inner of foldersIn(folder)) thaw(inner);
}

/** The kernel removes only empty groups, so the innermost go first. A group that was just emptied may still be busy. */
function removeCgroup(folder: string): boolean {
  for (const inner of foldersIn(folder)) removeCgroup(inner);
  try {
    rmdirSync(folder);
  } catch {
    return inodeOf(folder) === undefined;
  }
  return true;
}

function foldersIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => `${folder}/${entry.name}`);
  } catch {
    return [];
  }
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

function netnsInodeOf(pid: number): number | undefined {
  try {
    return Number(/\d+/.exec(readlinkSync(`/proc/${pid}/ns/net`))?.[0]);
  } catch {
    return undefined;
  }
}

/** Processes in a control group and in those below it. */
function membersOf(group: string): number[] {
  const pids = textOf(`${group}/cgroup.procs`).split("\n").filter(Boolean).map(Number);
  return [...pids, ...foldersIn(group).flatMap(membersOf)];
}

/** The command line. */
function wordsOf(pid: number): readonly string[] {
  return textOf(`/proc/${pid}/cmdline`).split("\0");
}

function isZombie(pid: number): boolean {
  const stat = textOf(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
}
