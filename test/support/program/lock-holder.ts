/** Process that holds the lock of nf_tables in a namespace, as long as a test likes. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { makeFolder } from "../rig/folder.ts";
import { inNetns } from "../rig/netns.ts";
import { inTime } from "../rig/wait.ts";

const PROGRAM = fileURLToPath(new URL("lock-holder-main.js", import.meta.url));
const folder = makeFolder("locks");

export class LockHolder implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(folder, "lock-"));
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(netnsPath: string) {
    const [command = "", ...args] = inNetns(netnsPath, "unshare", ["--mount", process.execPath, PROGRAM, this.#folder]);
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#ended = once(this.#child, "close");
  }

  static async in(netnsPath: string): Promise<LockHolder> {
    const holder = new LockHolder(netnsPath);
    if (holder.#child.stdout === null) throw new Error("no stdout pipe");
    const isHeld = once(holder.#child.stdout, "data").then(() => true);
    if (await inTime(Promise.race([isHeld, holder.#ended.then(() => false)]), "the lock to be held")) return holder;
    await holder[Symbol.asyncDispose]();
    throw new Error("the process that should hold the lock has ended; its own line says why");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
