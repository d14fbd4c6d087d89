/** Running `dns11 ui` of a test, and requests to its page. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

import { PROGRAM } from "./built.ts";
import { SYSTEM_PATH } from "./command.ts";
import type { Dns11 } from "./dns11.ts";
import { inTime, waitFor } from "../rig/wait.ts";

export class UiCommand implements AsyncDisposable {
  /** With the token. */
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(engine: { readonly host: string }, { stateDir }: Dns11): Promise<UiCommand> {
    const words = ["ui", "--port", "0", "--no-open", "-H", engine.host, "--state-dir", stateDir];
    const child = spawn(process.execPath, [PROGRAM, ...words], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    let output = "";
    let errors = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    const url = await waitFor("dns11 ui to print its URL", () => {
      if (child.exitCode !== null) throw new Error(errors);
      return /^(http:\S+)\n/.exec(output)?.[1];
    });
    return new UiCommand(child, url);
  }

  get origin(): string {
    return new URL(this.url).origin;
  }

  get port(): string {
    return new URL(this.url).port;
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const token = /token=(\w+)/.exec(this.url)?.[1] ?? "";
    return await fetch(`${this.origin}${path}`, { ...init, headers: { "x-dns11-token": token } });
  }

  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (this.#child.exitCode !== null) return this.#child.exitCode;
    const exited = once(this.#child, "close");
    this.#child.kill(signal);
    await inTime(exited, "dns11 ui to exit");
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}
