// Victim: a container that sends queries all the time, with the results of each period.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { SYSTEM_PATH } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";
import { inNetns } from "../support/rig/netns.ts";
import { unrefChild } from "../support/rig/reaper.ts";
import { inTime } from "../support/rig/wait.ts";

export type Period = {
  readonly sent: number;
  // No reply, or SERVFAIL or REFUSED.
  readonly lost: number;
  readonly wrong: number;
  readonly examples: readonly string[];
};

const PROGRAM = fileURLToPath(new URL("./victim-main.js", import.meta.url));

export class Victim implements AsyncDisposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting: ((result: Period) => void)[] = [];
  readonly #ended: Promise<unknown>;

  constructor(container: Container, web: string, firstNumber: number) {
    // It runs before others: what it does not read in time would be blamed on the attack.
    const program = ["-n", "-15", process.execPath, PROGRAM, web, String(firstNumber)];
    const [command = "", ...args] = inNetns(container.netnsPath, "nice", program);
    this.#process = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    this.#process.stdin.on("error", () => undefined);
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      this.#waiting.shift()?.(JSON.parse(line) as Period);
    });
    this.#ended = once(this.#process, "close");
    unrefChild(this.#process);
  }

  // The results of all queries since the last call, after all of them were answered or timed out.
  async period(): Promise<Period> {
    const result = new Promise<Period>((resolve) => this.#waiting.push(resolve));
    this.#process.stdin.write("\n");
    return await inTime(result, "the victim's results");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin.end();
    await inTime(this.#ended, "the end of the victim");
  }
}
