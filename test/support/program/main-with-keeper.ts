// Main process with a keeper and without an engine, in namespaces of the test.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import type { KeeperReport } from "../../../src/base/model/keeper-report.ts";
import { inTime, waitFor } from "../rig/wait.ts";

/** For each namespace: two that answer, one that owns the rules, and one that notices changes. */
export const SOCKETS_HELD = 4;

const PROGRAM = fileURLToPath(new URL("./main-with-keeper-main.js", import.meta.url));

export type MainWithKeeperOptions = {
  readonly folder: string;
  readonly hasKeeper?: boolean;
  readonly paths: readonly string[];
};

export class MainWithKeeper implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly exited: Promise<number | string>;
  readonly lines: Record<string, unknown>[] = [];

  constructor({ folder, hasKeeper = true, paths }: MainWithKeeperOptions) {
    this.#child = spawn(process.execPath, [PROGRAM, folder, hasKeeper ? "with-keeper" : "alone", ...paths], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.exited = once(this.#child, "exit").then(([code, signal]) => (code ?? signal) as number | string);
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.lines.push(JSON.parse(line) as Record<string, unknown>);
    });
  }

  static async start(options: MainWithKeeperOptions): Promise<MainWithKeeper> {
    const kept = new MainWithKeeper(options);
    await waitFor("everything to be attached", () => kept.lines.find((line) => "ready" in line));
    if (options.hasKeeper ?? true) await kept.keeperWith(options.paths.length);
    return kept;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get report(): KeeperReport | undefined {
    return this.lines.findLast((line) => "keeper" in line)?.["keeper"] as KeeperReport | undefined;
  }

  // Waits for a watching keeper other than `not` that holds this many namespaces; returns its process id.
  async keeperWith(namespaces: number, not?: number): Promise<number> {
    return await waitFor(`a keeper of ${namespaces} namespaces`, () => {
      const { state, pid } = this.report ?? {};
      if (state !== "watching" || pid == null || pid === not) return undefined;
      return socketsHeldBy(pid) >= namespaces * SOCKETS_HELD ? pid : undefined;
    });
  }

  // Attaches to a further namespace, or detaches from an attached one.
  toggle(path: string): void {
    this.#child.stdin.write(`${path}\n`);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.kill("SIGKILL");
    await inTime(this.exited, "the main process to end");
  }
}

// Number of sockets that a keeper holds, without those it was started with.
export function socketsHeldBy(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  if (!existsSync(folder)) return 0;
  const links = readdirSync(folder).map((fd) => {
    try {
      return Number(fd) < STARTED_WITH ? "" : readlinkSync(`${folder}/${fd}`);
    } catch {
      return "";
    }
  });
  return links.filter((link) => link.startsWith("socket:")).length;
}
// stdin, stdout and stderr, the channel, and the socket where successors connect.
const STARTED_WITH = 5;

export function isAlive(pid: number): boolean {
  if (!existsSync(`/proc/${pid}`)) return false;
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
