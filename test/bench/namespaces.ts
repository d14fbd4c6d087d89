// Fast creation of many empty network namespaces with loopback up, as an engine leaves them.

import { spawnSync } from "node:child_process";

import { run } from "../support/program/command.ts";

const AT_ONCE = 8;

export async function makeNetnses(count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, index) => `d11-bench-${process.pid}-${index}`);
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
  batch(paths.map((path) => `netns del ${path.slice(path.lastIndexOf("/") + 1)}`));
}

function batch(lines: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", ["-force", "-batch", "-"], {
    input: `${lines.join("\n")}\n`,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`ip -batch: ${stderr}`);
}
