/** UiCommand: running `dns11 ui` of a test, the URL that it prints, and requests to its page. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

import { PROGRAM } from "./built.ts";
import { SYSTEM_PATH } from "./command.ts";
import { inTime, waitFor } from "../rig/wait.ts";

/** Of the instance whose page it is. */
export interface UiPlace {
  readonly host: string;
  readonly stateDir: string;
}

export interface UiOptions {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** User and group. */
  readonly uid?: number;
}

export class UiCommand implements AsyncDisposable {
  /** With the token. */
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #output: { text: string };

  private constructor(child: ChildProcess, exited: Promise<unknown>, output: { text: string }, url: string) {
    this.#child = child;
    this.#exited = exited;
    this.#output = output;
    this.url = url;
  }

  static async start({ host, stateDir }: UiPlace, options: UiOptions = {}): Promise<UiCommand> {
    const { args = ["--no-open"], env = {}, uid } = options;
    const words = ["ui", "--port", "0", "-H", host, "--state-dir", stateDir, ...args];
    const child = spawn(process.execPath, [PROGRAM, ...words], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PATH: SYSTEM_PATH, ...env },
      ...(uid !== undefined && { uid, gid: uid }),
    });
    const exited = once(child, "close").catch(() => undefined);
    const output = { text: "" };
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output.text += chunk.toString()));
    const url = await waitFor("dns11 ui to print its URL", () => {
      if (child.exitCode !== null) throw new Error(`dns11 ui exited: ${output.text}`);
      return /^http:\S+$/m.exec(output.text)?.[0];
    });
    return new UiCommand(child, exited, output, url);
  }

  /** Without path and token. */
  get origin(): string {
    return new URL(this.url).origin;
  }

  get port(): string {
    return new URL(this.url).port;
  }

  get token(): string {
    return new URLSearchParams(new URL(this.url).hash.slice(1)).get("token") ?? "";
  }

  /** All that it has written so far. */
  get output(): string {
    return this.#output.text;
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return await fetch(`${this.origin}${path}`, { ...init, headers: { "x-dns11-token": this.token } });
  }

  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
    await inTime(this.#exited, "dns11 ui to exit");
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}
