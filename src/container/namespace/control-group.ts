/**
 * ControlGroupOf: which control group of version 2 a process is in, as rules match it: the kernel keeps that with each socket, and
 * whoever sends through it cannot change it.
 */
import { statSync, statfsSync } from "node:fs";

import { procText } from "../../kernel/process.ts";
import type { ControlGroup } from "../capture/capture.ts";

/** linux/magic.h */
const CGROUP2_MAGIC = 0x63677270;
/** Version 2 alone, and beside version 1. */
const MOUNTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const CHARS_MAX = 4096;

export function groupPath(pid: number | "self"): string | undefined {
  const text = procText(`/proc/${pid}/cgroup`) ?? "";
  return /^0::(.+)$/m.exec(text.slice(0, CHARS_MAX))?.[1];
}

export function groupLevel(path: string): number {
  return path.split("/").length - 1;
}

/** The number of its folder, as that process sees it, is the id of the group. */
export function groupId(pid: number | "self", path: string): bigint | undefined {
  for (const mount of MOUNTS) {
    const root = `/proc/${pid}/root${mount}`;
    try {
      if (statfsSync(root).type === CGROUP2_MAGIC) return statSync(root + path, { bigint: true }).ino;
    } catch {
      // They are not mounted there.
    }
  }
  return undefined;
}

/** This process's own; undefined if it has none, or a container's process is in it, too: then it tells them not apart. */
export function ownGroup(containerPid: number): ControlGroup | undefined {
  const path = groupPath("self");
  const other = groupPath(containerPid);
  if (path === undefined || path === "/" || path.includes("..") || other === undefined) return undefined;
  if (other === path || other.startsWith(`${path}/`)) return undefined;
  const id = groupId("self", path);
  return id === undefined ? undefined : { id, level: groupLevel(path) };
}
