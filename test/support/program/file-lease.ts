/** Process on the machine that holds a write lease on a file. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { inTime } from "../rig/wait.ts";

const PROGRAM = fileURLToPath(new URL("file-lease-main.js", import.meta.url));

export class FileLease implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(path: string) {
    this.#child = spawn(process.execPath, [PROGRAM, path], { stdio: ["ignore", "pipe", "inherit"] });
    this.#exited = once(this.#child, "close");
  }

  static async on(path: string): Promise<FileLease> {
    const lease = new FileLease(path);
    if (lease.#child.stdout === null) throw new Error("no stdout pipe");
    await inTime(once(lease.#child.stdout, "data"), "the lease");
    return lease;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }
}
