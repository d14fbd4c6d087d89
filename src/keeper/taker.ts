/**
 * Taker: whether a process that asks for a takeover may have it. Root of a container that has the state directory mounted can
 * connect to the keeper as well; it gets neither descriptors of other containers nor has dns11 pause for it.
 */
import { readlinkSync } from "node:fs";

import { procText } from "../kernel/proc-text.ts";

/** The operator's shell is in the mount namespace of the first process, whatever a service manager did for the service. */
const FIRST_PROCESS = 1;

/**
 * Why it may not; undefined if it may: it shares our PID namespace, and our mount namespace or the first process's. While nothing
 * serves, our control group does as well: a service gets a new mount namespace with each start.
 */
export function whyNotTaker(pid: number, { mayShareGroup = false } = {}): string | undefined {
  const processes = namespaceOf(pid, "pid");
  const mounts = namespaceOf(pid, "mnt");
  if (processes === undefined || mounts === undefined) return "its namespaces cannot be read";
  if (processes !== namespaceOf("self", "pid")) return "it is in another PID namespace";
  const allowed = [namespaceOf("self", "mnt"), namespaceOf(FIRST_PROCESS, "mnt")];
  if (allowed.includes(mounts)) return undefined;
  return mayShareGroup && isInOurGroup(pid) ? undefined : "it is in another mount namespace";
}

function isInOurGroup(pid: number): boolean {
  try {
    const group = procText(`/proc/${pid}/cgroup`);
    return group !== undefined && group === procText("/proc/self/cgroup");
  } catch {
    // It has ended meanwhile.
    return false;
  }
}

/** undefined where it cannot be read. */
function namespaceOf(pid: number | "self", kind: "mnt" | "pid"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/${kind}`);
  } catch {
    return undefined;
  }
}
