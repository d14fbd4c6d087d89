// State folder of dns11: a small tmpfs, which can be filled without harming anything else. It is mounted in a mount
// namespace that one sleeping process keeps and dns11 enters; the mount goes with that process, whatever happens to the
// run.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdirSync, openSync, rmSync, writeSync } from "node:fs";

import { controlPath, instanceFolder } from "../../src/api/state-paths.ts";
import { SYSTEM_PATH } from "../support/program/command.ts";
import { unrefChild } from "../support/rig/reaper.ts";
import { inTime } from "../support/rig/wait.ts";

const SIZE = "128k";
const MOUNT = `mount -t tmpfs -o "size=$2,mode=755" dns11-state "$1" && echo ready && exec sleep infinity`;
const CHUNK = Buffer.alloc(4096);

export class StateFolder implements AsyncDisposable {
  // Path as dns11 sees it.
  readonly path: string;
  readonly #mountProcess: ChildProcess;
  readonly #descriptor: number;

  private constructor(path: string, mountProcess: ChildProcess) {
    this.path = path;
    this.#mountProcess = mountProcess;
    this.#descriptor = openSync(
      `/proc/${mountProcess.pid ?? 0}/root${path}`,
      constants.O_RDONLY | constants.O_DIRECTORY,
    );
  }

  static async make(path: string): Promise<StateFolder> {
    mkdirSync(path);
    const words = ["--pdeathsig", "KILL", "--", "unshare", "--mount", "sh", "-c", MOUNT, "sh", path, SIZE];
    const mountProcess = spawn("setpriv", words, {
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    await inTime(once(mountProcess.stdout, "data"), "the mount of the state folder");
    unrefChild(mountProcess);
    return new StateFolder(path, mountProcess);
  }

  // Prefix of a command that sees the folder.
  get prefix(): string[] {
    return ["nsenter", "--target", String(this.#mountProcess.pid ?? 0), "--mount", "--"];
  }

  // Through our descriptor: the whole path is too long for a socket.
  control(engineId: string): string {
    return controlPath(instanceFolder(`/proc/self/fd/${this.#descriptor}`, engineId));
  }

  fill(): void {
    const file = openSync(this.#filler, "w");
    try {
      for (;;) writeSync(file, CHUNK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    } finally {
      closeSync(file);
    }
  }

  empty(): void {
    rmSync(this.#filler, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    closeSync(this.#descriptor);
    const ended = once(this.#mountProcess, "close");
    this.#mountProcess.kill("SIGKILL");
    await inTime(ended, "the exit of the mount process");
  }

  get #filler(): string {
    return `/proc/self/fd/${this.#descriptor}/filler`;
  }
}
