import { type ChildProcess, spawn } from "node:child_process";

import { inTime, waitFor } from "../rig/wait.ts";
import { PROGRAM } from "./built.ts";

/** A command that goes on until it is told to end. */
export class GoingCommand implements AsyncDisposable {
  readonly child: ChildProcess;
  out = "";
  readonly #ended: Promise<number>;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.child = spawn(process.execPath, [PROGRAM, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.out += chunk.toString()));
    this.#ended = new Promise((resolve) => this.child.on("close", (code) => resolve(code ?? -1)));
  }

  async says(pattern: RegExp): Promise<void> {
    await waitFor(`${pattern}`, () => {
      if (this.child.exitCode !== null) throw new Error(`it has ended: ${this.out}`);
      return pattern.test(this.out) ? true : undefined;
    });
  }

  async end(signal: NodeJS.Signals = "SIGINT"): Promise<number> {
    this.child.kill(signal);
    return await this.ended;
  }

  get ended(): Promise<number> {
    return inTime(this.#ended, "the command to end");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}
