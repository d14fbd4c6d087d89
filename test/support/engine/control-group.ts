/** Control group of version 2 of its own for a test's dockerd, as a service manager gives it one on a real machine. */
import { mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Engine } from "./engine.ts";

const CGROUP2_MAGIC = 0x63677270;
const MOUNTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/** Moves dockerd there; the sockets that it opens from now on are the group's. It is removed together with the engine. */
export function giveControlGroup({ id, pid }: Engine): void {
  const mount = MOUNTS.find((each) => statfsSync(each).type === CGROUP2_MAGIC);
  if (mount === undefined) throw new Error("no control groups of version 2 are mounted");
  const folder = join(mount, id);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "cgroup.procs"), String(pid));
}
