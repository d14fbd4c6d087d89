/**
 * FindSandbox: the path that the engine has for the network namespace of a container that it does not describe. Every control
 * group of a container has its id, so a process of it can be found; the engine keeps a file for each namespace.
 */
import { closeSync, constants, readdirSync, statSync } from "node:fs";
import { posix } from "node:path";

import { gatherInSlices } from "../../base/lib/slices.ts";
import { openInRoot } from "../../kernel/libc.ts";
import type { ContainerFact } from "../facts/fact.ts";
import type { EngineHost } from "./engine-host.ts";
import { isOfContainer } from "./proof.ts";

export const SANDBOX_FOLDER = "/var/run/docker/netns";

/** As the engine says for the containers that are known. */
export function sandboxFolder(facts: Iterable<ContainerFact>, otherwise = SANDBOX_FOLDER): string {
  for (const { sandboxKey } of facts) if (sandboxKey !== "") return posix.dirname(sandboxKey);
  return otherwise;
}

export interface Sandbox {
  readonly path: string;
  /** A process of the container. */
  readonly pid: number;
}

/** Undefined while there is none, or if it cannot be found. */
export async function findSandbox(
  containerId: string,
  { root, sharesPids }: Pick<EngineHost, "root" | "sharesPids">,
  folder: string,
): Promise<Sandbox | undefined> {
  if (!sharesPids) return undefined;
  // It has just started.
  const pids = readdirSync("/proc")
    .flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []))
    .toSorted((one, other) => other - one);
  const own = await gatherInSlices(networksOf(pids, containerId));
  const files = own.length === 0 ? new Map<number, string>() : sandboxesIn(root, folder);
  for (const { pid, inode } of own) {
    const path = files.get(inode);
    if (path !== undefined) return { path, pid };
  }
  return undefined;
}

function* networksOf(
  pids: readonly number[],
  containerId: string,
): Generator<{ readonly pid: number; readonly inode: number } | undefined> {
  for (const pid of pids) {
    const inode = isOfContainer(pid, containerId) ? inodeOf(`/proc/${pid}/ns/net`) : undefined;
    yield inode === undefined ? undefined : { pid, inode };
  }
}

/** The files by the inode of their namespace. */
function sandboxesIn(root: number, folder: string): Map<number, string> {
  const found = new Map<number, string>();
  let fd = -1;
  try {
    fd = openInRoot(root, folder, constants.O_RDONLY | constants.O_DIRECTORY);
    for (const name of readdirSync(`/proc/self/fd/${fd}`)) {
      const inode = inodeOf(`/proc/self/fd/${fd}/${name}`);
      if (inode !== undefined) found.set(inode, `${folder}/${name}`);
    }
  } catch {
    // The engine keeps them elsewhere.
  } finally {
    if (fd >= 0) closeSync(fd);
  }
  return found;
}

export function inodeOf(path: string): number | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino;
  } catch {
    // A process that ends, or none of ours.
    return undefined;
  }
}
