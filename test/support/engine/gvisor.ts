/**
 * gVisor for an engine of a test: runsc of Debian, beside everything that is installed. It finds out by a file below /proc/sys/net whether it
 * would take over the machine's own network, and refuses then. Since Linux 6.9 or so every namespace has that file, so
 * runsc gets a mount namespace without it.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

import { check } from "../program/command.ts";

const PACKAGE = "runsc";

/** Writes a program into a folder that is the same on the engine's host; returns its runtime for daemon.json. */
export async function gvisorRuntime(folder: string): Promise<Readonly<Record<string, unknown>>> {
  const real = await runscProgram();
  const path = join(folder, "runsc");
  const inside = `mount -t tmpfs tmpfs /proc/sys/net; exec "$@"`;
  writeFileSync(path, `#!/bin/sh\nexec unshare --mount --propagation slave sh -c '${inside}' sh ${real} "$@"\n`, {
    mode: 0o755,
  });
  return { path, runtimeArgs: ["--platform=ptrace", "--ignore-cgroups"] };
}

/** Without installing it. */
async function runscProgram(): Promise<string> {
  const cache = process.env["DNS11_TEST_CACHE"] ?? join(homedir(), ".cache", "dns11", "rootfs");
  const folder = join(cache, PACKAGE);
  const program = join(folder, "usr/bin/runsc");
  if (existsSync(program)) return program;
  mkdirSync(cache, { recursive: true });
  const partial = mkdtempSync(join(cache, `${PACKAGE}.partial-`));
  try {
    await check("sh", ["-ceu", 'cd "$1" && apt-get download "$2"', "sh", partial, PACKAGE]);
    const file = readdirSync(partial).find((name) => name.endsWith(".deb")) ?? "";
    await check("dpkg", ["-x", join(partial, file), join(partial, "root")]);
    if (!existsSync(folder)) renameSync(join(partial, "root"), folder);
  } finally {
    rmSync(partial, { recursive: true });
  }
  return program;
}
