/**
 * ControlGroups: the control groups whose queries pass by. dockerd forwards queries of containers from the host's
 * namespace, and a resolver on the host may forward those of virtual machines or of the local network: they must not be
 * answered as the host's own. A packet's control group is what tells them apart.
 */
import { statSync, statfsSync } from "node:fs";

import { Fault } from "../../base/lib/fault.ts";
import { procText } from "../../kernel/proc-text.ts";
import type { ControlGroup } from "../capture/capture.ts";
import { controlGroupsAt } from "../namespace/listeners.ts";
import { HOST_LIMITS } from "./limits.ts";

/** linux/magic.h */
const CGROUP2_MAGIC = 0x63677270;
/** Version 2 alone, and beside version 1. */
const MOUNTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const CHARS_MAX = 4096;
const DNS_PORT = 53;
const CGROUP_REMEDY = "Run dockerd and dns11 each as a service, on cgroup version 2, or with --cgroupns host.";

/** Call inside the host's namespace. */
export function sparedGroups(enginePid: number): ControlGroup[] {
  return [engineCgroup(enginePid), ...resolverGroups(enginePid)];
}

/** Throws a Fault if the engine has no control group of its own, or dns11 is in it. */
export function engineCgroup(pid: number): ControlGroup {
  const path = pathOf(pid);
  if (path === undefined || path === "/" || path.includes("..")) {
    throw new Fault("HOST_ENGINE_MIXED", "The engine's process has no control group of version 2 of its own", {
      remedy: CGROUP_REMEDY,
    });
  }
  const own = pathOf("self");
  if (own === path || own?.startsWith(`${path}/`) === true) {
    throw new Fault("HOST_ENGINE_MIXED", "dns11 and the engine's process are in the same control group", {
      remedy: CGROUP_REMEDY,
    });
  }
  const id = idOf(pid, path);
  if (id !== undefined) return { id, level: levelOf(path) };
  throw new Fault("HOST_ENGINE_MIXED", `Cannot see the engine's control group "${path}"`, { remedy: CGROUP_REMEDY });
}

/**
 * The groups of the processes that answer at port 53. The kernel tells their ids only, so each is looked for at every
 * level; the root has none. dns11's own group is left out: its probes come from there.
 */
function resolverGroups(enginePid: number): ControlGroup[] {
  const own = idOf(enginePid, pathOf("self") ?? "/");
  const ids = controlGroupsAt(DNS_PORT).filter((id) => id !== own);
  const levels = Array.from({ length: HOST_LIMITS.groupLevels }, (_, index) => index + 1);
  return ids.slice(0, HOST_LIMITS.resolverGroups).flatMap((id) => levels.map((level) => ({ id, level })));
}

function pathOf(pid: number | "self"): string | undefined {
  const text = procText(`/proc/${pid}/cgroup`) ?? "";
  return /^0::(.+)$/m.exec(text.slice(0, CHARS_MAX))?.[1];
}

function levelOf(path: string): number {
  return path.split("/").length - 1;
}

/** The number of its folder, as the engine's process sees it, is the id of the group. */
function idOf(pid: number, path: string): bigint | undefined {
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
