// Prober: a process in a container's network namespace that queries the container's own name all the time, without
// waiting for earlier replies, and reports the outcome of each query. It also creates background load, neighbours'
// names and forwarded names, which is counted but not judged.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { SYSTEM_PATH } from "../support/program/command.ts";
import { inNetns } from "../support/rig/netns.ts";
import { unrefChild } from "../support/rig/reaper.ts";
import { inTime } from "../support/rig/wait.ts";

// A new UDP socket for each query, one UDP socket for all queries, a TCP connection for each query.
export const PROBE_MODES = ["fresh", "reused", "tcp"] as const;
export type ProbeMode = (typeof PROBE_MODES)[number];

// Probe intervals.
export const EVERY_MS: Readonly<Record<ProbeMode, number>> = { fresh: 50, reused: 100, tcp: 250 };

export type ProbeResult = {
  readonly mode: ProbeMode;
  readonly startedMs: number;
  readonly tookMs: number;
  // "answer", or the failure: "timeout", "ECONNREFUSED", "NXDOMAIN", "no data" ...
  readonly outcome: string;
  readonly addresses?: readonly string[];
  readonly ttl?: number;
};

// A span in which the prober itself got no CPU and sent no queries.
export type Stall = { readonly fromMs: number; readonly toMs: number };

export type ProberOptions = {
  readonly name: string;
  readonly neighbours: readonly string[];
  readonly giveUpMs: number;
  // It ends by itself after this time, even if the run is gone.
  readonly forMs: number;
};

export type ProberReport = {
  readonly probes: readonly ProbeResult[];
  readonly stalls: readonly Stall[];
  // Load queries by outcome since the last line.
  readonly load: Readonly<Record<string, number>>;
};

const PROGRAM = fileURLToPath(new URL("./prober-main.js", import.meta.url));
const START_MS = 90_000;

type Process = ChildProcessByStdio<Writable, Readable, null>;

export class Prober {
  readonly #process: Process;
  readonly #ended: Promise<unknown>;

  private constructor(process: Process, ended: Promise<unknown>) {
    this.#process = process;
    this.#ended = ended;
  }

  // Resolves when it has started to probe.
  static async start(netnsPath: string, options: ProberOptions, onLine: (line: ProberReport) => void): Promise<Prober> {
    const [command = "", ...args] = inNetns(netnsPath, process.execPath, [PROGRAM, JSON.stringify(options)]);
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    child.stdin.on("error", () => {});
    const ended = once(child, "close");
    unrefChild(child);
    const began = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        onLine(JSON.parse(line) as ProberReport);
        resolve();
      });
    });
    const early = ended.then(() => {
      throw new Error(`the prober of ${options.name} exited while starting`);
    });
    early.catch(() => undefined);
    await inTime(Promise.race([began, early]), `the prober of ${options.name}`, START_MS);
    return new Prober(child, ended);
  }

  // Replaces the reused socket.
  renewSocket(): void {
    this.#process.stdin.write("renew\n");
  }

  // Reports its last probes and exits.
  async end(): Promise<void> {
    this.#process.stdin.end();
    await inTime(this.#ended, "the exit of a prober", START_MS);
  }
}
