// A process inside a container's network namespace that asks for the container's own name all the time, whether or not
// earlier questions were answered, and reports how each of them ended. It also makes some load: the neighbours' names and
// names that servers have to be asked for, which are counted but not judged.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { SYSTEM_PATH } from "../support/program/command.ts";
import { inNetns } from "../support/rig/netns.ts";
import { letGo } from "../support/rig/reaper.ts";
import { inTime } from "../support/rig/wait.ts";

// A fresh UDP socket for each question, one UDP socket for all of them, a TCP connection for each.
export const WAYS = ["fresh", "kept", "tcp"] as const;
export type Way = (typeof WAYS)[number];

// How often each is asked.
export const EVERY_MS: Readonly<Record<Way, number>> = { fresh: 50, kept: 100, tcp: 250 };

export type Question = {
  readonly way: Way;
  readonly askedMs: number;
  readonly tookMs: number;
  // "answer", or how there was none: "timeout", "ECONNREFUSED", "NXDOMAIN", "no data" ...
  readonly outcome: string;
  readonly addresses?: readonly string[];
  readonly ttl?: number;
};

// The asker itself got no processor in this span, so it did not ask either.
export type Late = { readonly fromMs: number; readonly toMs: number };

export type AskerOptions = {
  readonly name: string;
  readonly neighbours: readonly string[];
  readonly giveUpMs: number;
  // It ends by itself after this time, whatever becomes of the run.
  readonly forMs: number;
};

export type AskerLine = {
  readonly questions: readonly Question[];
  readonly lates: readonly Late[];
  // How many questions of the load ended how since the last line.
  readonly load: Readonly<Record<string, number>>;
};

const PROGRAM = fileURLToPath(new URL("./prober-main.js", import.meta.url));
const START_MS = 30_000;

type Process = ChildProcessByStdio<Writable, Readable, null>;

export class Asker {
  readonly #process: Process;
  readonly #ended: Promise<unknown>;

  private constructor(process: Process, ended: Promise<unknown>) {
    this.#process = process;
    this.#ended = ended;
  }

  // Resolves when it has begun to ask.
  static async start(netnsPath: string, options: AskerOptions, onLine: (line: AskerLine) => void): Promise<Asker> {
    const [command = "", ...args] = inNetns(netnsPath, process.execPath, [PROGRAM, JSON.stringify(options)]);
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    child.stdin.on("error", () => {});
    const ended = once(child, "close");
    letGo(child);
    const began = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        onLine(JSON.parse(line) as AskerLine);
        resolve();
      });
    });
    const early = ended.then(() => {
      throw new Error(`the asker of ${options.name} ended at its start`);
    });
    early.catch(() => undefined);
    await inTime(Promise.race([began, early]), `the asker of ${options.name}`, START_MS);
    return new Asker(child, ended);
  }

  // The socket that is kept becomes another one.
  renewSocket(): void {
    this.#process.stdin.write("renew\n");
  }

  // Its last questions are reported, then it is gone.
  async end(): Promise<void> {
    this.#process.stdin.end();
    await inTime(this.#ended, "the end of an asker", START_MS);
  }
}
