// Fast creation of many empty network namespaces with loopback up, as an engine leaves them.

import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";

import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { LOOPBACK_INDEX } from "../../src/kernel/rtnetlink-constants.ts";
import { RouteSocket } from "../../src/kernel/rtnetlink.ts";
import { hold, release } from "../support/rig/reaper.ts";

export function makeNetnses(count: number): string[] {
  const names = Array.from({ length: count }, (_, index) => `d11-bench-${process.pid}-${index}`);
  for (const id of names) hold({ id });
  batch(names.map((name) => `netns add ${name}`));
  const paths = names.map((name) => `/run/netns/${name}`);
  setLoopbacksUp(paths);
  return paths;
}

// A process for each would take most of the time.
function setLoopbacksUp(paths: readonly string[]): void {
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  for (const path of paths) {
    const fd = openSync(path, "r");
    const route = runner.within(fd, () => new RouteSocket(memory));
    route.setUp(LOOPBACK_INDEX);
    route.close();
    closeSync(fd);
  }
  runner.close();
}

export function removeNetnses(paths: readonly string[]): void {
  const names = paths.map((path) => path.slice(path.lastIndexOf("/") + 1));
  batch(names.map((name) => `netns del ${name}`));
  for (const id of names) release({ id });
}

function batch(lines: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", ["-force", "-batch", "-"], {
    input: `${lines.join("\n")}\n`,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`ip -batch: ${stderr}`);
}
