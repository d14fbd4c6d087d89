/** UiCommand: `dns11 ui` of a test, on a free port, and the URL that it prints. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

import { PROGRAM } from "../program/built.ts";
import { SYSTEM_PATH } from "../program/command.ts";
import { inTime, waitFor } from "../rig/wait.ts";

export class UiCommand implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(child: ChildProcess, exited: Promise<unknown>, url: string) {
    this.#child = child;
    this.#exited = exited;
    this.url = url;
  }

  static async start(place: { readonly host: string; readonly stateDir: string }): Promise<UiCommand> {
    const args = ["ui", "--port", "0", "--no-open", "-H", place.host, "--state-dir", place.stateDir];
    const child = spawn(process.execPath, [PROGRAM, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    const exited = once(child, "close");
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const url = await waitFor("the URL of dns11 ui", () => {
      if (child.exitCode !== null) throw new Error(`dns11 ui exited: ${output}`);
      return /^http:\S+$/m.exec(output)?.[0];
    });
    return new UiCommand(child, exited, url);
  }

  /** Without path and token. */
  get origin(): string {
    return new URL(this.url).origin;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill("SIGTERM");
    await inTime(this.#exited, "dns11 ui to end");
  }
}
