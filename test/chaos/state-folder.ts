// The state folder of dns11: a small tmpfs of the run's own, so that it can be full without harming anybody else. It is
// mounted in a mount namespace that one sleeping process keeps and dns11 enters: whatever becomes of the run, the mount
// goes with that process.

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
  // As dns11 knows it.
  readonly path: string;
  readonly #holder: ChildProcess;
  readonly #descriptor: number;

  private constructor(path: string, holder: ChildProcess) {
    this.path = path;
    this.#holder = holder;
    this.#descriptor = openSync(`/proc/${holder.pid ?? 0}/root${path}`, constants.O_RDONLY | constants.O_DIRECTORY);
  }

  static async make(path: string): Promise<StateFolder> {
    mkdirSync(path);
    const words = ["--pdeathsig", "KILL", "--", "unshare", "--mount", "sh", "-c", MOUNT, "sh", path, SIZE];
    const holder = spawn("setpriv", words, {
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    await inTime(once(holder.stdout, "data"), "the mount of the state folder");
    unrefChild(holder);
    return new StateFolder(path, holder);
  }

  // What to put before a command for it to see the folder.
  get prefix(): string[] {
    return ["nsenter", "--target", String(this.#holder.pid ?? 0), "--mount", "--"];
  }

  // By mode of our descriptor: the whole path would be too long for a socket.
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
    const ended = once(this.#holder, "close");
    this.#holder.kill("SIGKILL");
    await inTime(ended, "the end of the state folder's keeper");
  }

  get #filler(): string {
    return `/proc/self/fd/${this.#descriptor}/filler`;
  }
}
