/**
 * OwnServer: the dns11 that serves while a command runs. It is a process of its own: a run gives up
 * capabilities and changes its environment, and the command has those of whoever typed it. Signals of the terminal are for the
 * command. It ends when the process that it serves for ends, in whatever way.
 */
import { type ChildProcess, spawn } from "node:child_process";

import { EXIT } from "./exit-code.ts";
import { abortOnSignal } from "./own-process.ts";

/** The variable stays when the server restarts itself, and no other process has it. */
const VARIABLE = "DNS11_OWN_SERVER";

/** Whether this process is one. */
export function isOwnServer(): boolean {
  return process.env[VARIABLE] !== undefined;
}

/** In the server: aborts when it is to end. */
export function endOfService(): AbortSignal {
  const controller = new AbortController();
  process.stdin.once("close", () => controller.abort()).resume();
  return AbortSignal.any([controller.signal, abortOnSignal()]);
}

export class OwnServer {
  readonly #child: ChildProcess;
  /** Its exit code. */
  readonly ended: Promise<number>;
  /** Undefined while it runs. */
  exitCode: number | undefined;

  /** `words` is its command line, which is one of `dns11 run --with`; by default that of this process. */
  constructor(words: readonly string[] = process.argv.slice(2), settings: Readonly<Record<string, string>> = {}) {
    const env = { ...process.env, ...settings, [VARIABLE]: "1" };
    const [, program = ""] = process.argv;
    this.#child = spawn(process.execPath, [...process.execArgv, program, ...words], {
      stdio: ["pipe", "inherit", "inherit"],
      detached: true,
      env,
    });
    this.ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", (code) => {
        this.exitCode = code ?? EXIT.failure;
        resolve(this.exitCode);
      });
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end();
    await this.ended;
  }
}
