/** Running `dns11 tail` of a test, and the lines it has printed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { PROGRAM } from "./built.ts";
import type { QueryReport } from "../../../src/api/queries.ts";
import { SYSTEM_PATH } from "./command.ts";
import type { Dns11 } from "./dns11.ts";
import { inTime, waitFor } from "../rig/wait.ts";

export class TailCommand implements AsyncDisposable {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #stderr = "";

  constructor(engine: { readonly host: string }, { stateDir }: Dns11, args: readonly string[]) {
    const words = ["tail", "--json", "-H", engine.host, "--state-dir", stateDir, ...args];
    this.#child = spawn(process.execPath, [PROGRAM, ...words], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()));
    if (this.#child.stdout !== null) {
      createInterface({ input: this.#child.stdout }).on("line", (line) => this.lines.push(line));
    }
    this.#exited = once(this.#child, "close");
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The queries printed so far with names that have this suffix. */
  queries(suffix: string): QueryReport[] {
    return this.lines
      .map((line) => JSON.parse(line) as QueryReport)
      .filter(({ name }) => name?.endsWith(suffix) === true);
  }

  /** Waits for that many of them. */
  async until(count: number, suffix: string): Promise<QueryReport[]> {
    return await waitFor(`${count} queries for ${suffix}`, () => {
      const queries = this.queries(suffix);
      return queries.length >= count ? queries : undefined;
    });
  }

  /** KernelAnswerMarker a query until tail prints it; from then on no query is missed. */
  async started(query: () => Promise<unknown>): Promise<void> {
    await waitFor("tail to follow", async () => {
      await query();
      return this.lines.length > 0 ? true : undefined;
    });
  }

  /** Waits for the exit, optionally after a signal, and returns the exit code. */
  async ended(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal !== undefined) this.#child.kill(signal);
    await inTime(this.#exited, "tail to end");
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill("SIGKILL");
    await this.#exited;
  }
}
