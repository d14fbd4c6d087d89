// Fast creation of many empty network namespaces with loopback up, as an engine leaves them.

import { spawnSync } from "node:child_process";

import { run } from "../support/program/command.ts";
import { hold, release } from "../support/rig/reaper.ts";

const AT_ONCE = 8;

export async function makeNetnses(count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, index) => `d11-bench-${process.pid}-${index}`);
  for (const id of names) hold({ id });
  batch(names.map((name) => `netns add ${name}`));
  const waiting = [...names];
  const worker = async (): Promise<void> => {
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      const { code, stderr } = await run("ip", ["-n", name, "link", "set", "lo", "up"]);
      if (code !== 0) throw new Error(stderr);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return names.map((name) => `/run/netns/${name}`);
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
