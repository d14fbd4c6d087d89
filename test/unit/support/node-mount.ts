// Mount namespace in which a file of the test is mounted over /etc/resolv.conf of a folder, as an engine mounts a
// container's. A sleeping process keeps it; nothing of it is visible outside.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { SYSTEM_PATH, check } from "../../support/program/command.ts";
import { inTime } from "../../support/rig/wait.ts";

const O_PATH = 0o10000000;
const MOUNT = `
set -eu
mount --bind "$1" "$2/etc/resolv.conf"
test "$3" = rw || mount -o "remount,bind,$3" "$2/etc/resolv.conf"
echo ready
exec sleep infinity
`;

export class NodeMount implements AsyncDisposable {
  readonly #folder: string;
  readonly #sleeper: ChildProcess;
  // Root of the container's paths, opened as /proc/PID/root is.
  readonly root: number;

  private constructor(folder: string, sleeper: ChildProcess) {
    this.#folder = folder;
    this.#sleeper = sleeper;
    this.root = openSync(`/proc/${sleeper.pid}/root${folder}`, O_PATH | constants.O_DIRECTORY);
  }

  static async create(file: string, mode: "rw" | "ro" = "rw"): Promise<NodeMount> {
    const folder = mkdtempSync(join(tmpdir(), "d11-node-"));
    mkdirSync(join(folder, "etc"));
    writeFileSync(join(folder, "etc/resolv.conf"), "");
    const sleeper = spawn(
      "unshare",
      ["--mount", "--propagation", "private", "sh", "-c", MOUNT, "node", file, folder, mode],
      {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, PATH: SYSTEM_PATH },
      },
    );
    await inTime(once(sleeper.stdout, "data"), "the mount");
    return new NodeMount(folder, sleeper);
  }

  // Runs a script in the mount namespace.
  async sh(script: string): Promise<string> {
    return await check("nsenter", [
      "--target",
      String(this.#sleeper.pid),
      "--mount",
      "sh",
      "-c",
      `cd ${this.#folder}\n${script}`,
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    closeSync(this.root);
    const gone = once(this.#sleeper, "exit");
    this.#sleeper.kill("SIGKILL");
    await gone;
    rmSync(this.#folder, { recursive: true });
  }
}
