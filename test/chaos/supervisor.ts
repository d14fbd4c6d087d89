// Supervisor: keeps dns11 running, as a service manager does, and records its processes: memory, descriptors and exits.
// An exit that no fault of the run explains is a defect.

import { readFileSync, readdirSync } from "node:fs";

import { ControlClient } from "../../src/api/control-client.ts";
import type { ContainerStatus } from "../../src/api/status.ts";
import { Dns11, type SettingTexts } from "../support/program/dns11.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import type { Member } from "./member.ts";
import type { Starved } from "./judge.ts";
import { monotonicMs } from "./monotonic.ts";
import type { World } from "./world.ts";

// As in the systemd unit.
const RESTART_MS = 1_000;
const LOOK_EVERY_MS = 250;
const STARVED_EVERY_MS = 100;
const NS_PER_MS = 1e6;
const READY_MS = 90_000;
const BYTES_PER_KB = 1024;

export type Cost = { readonly rssBytes: number; readonly descriptors: number };
export type UnexpectedExit = { readonly atMs: number; readonly exit: string; readonly log: string };

export type SupervisorOptions = {
  readonly host: string;
  readonly stateDir: string;
  readonly controlPath: string;
  readonly prefix: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly settings: SettingTexts;
  readonly world: World;
  readonly members: readonly Member[];
};

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #client: ControlClient;
  readonly #ends = new Map<string, number>();
  readonly #unexpectedExits: UnexpectedExit[] = [];
  readonly #starved: Starved[] = [];
  // Exit codes and signals that the current fault allows.
  #allowed: readonly (number | string)[] = [];
  #downMs = RESTART_MS;
  #current: Dns11 | undefined;
  #isEnding = false;
  #isReady = false;
  // When the last look began that found it ready.
  #readyMs = 0;
  #log = "";
  #running: Promise<unknown> = Promise.resolve();
  #first: Cost | undefined;
  #last: Cost | undefined;
  #maxRssBytes = 0;
  #maxDescriptors = 0;
  #statuses: readonly ContainerStatus[] = [];

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#client = new ControlClient(options.controlPath);
  }

  // Undefined while no process runs.
  get pid(): number | undefined {
    return this.#current?.isRunning === true ? this.#current.pid : undefined;
  }

  get isReady(): boolean {
    return this.#isReady && this.pid !== undefined;
  }

  // Counts of exits by exit code or signal.
  get ends(): ReadonlyMap<string, number> {
    return this.#ends;
  }

  get unexpectedExits(): readonly UnexpectedExit[] {
    return this.#unexpectedExits;
  }

  // When the last process became ready, at the end, and the maximum.
  get costs(): { readonly first: Cost | undefined; readonly last: Cost | undefined; readonly most: Cost } {
    const most = { rssBytes: this.#maxRssBytes, descriptors: this.#maxDescriptors };
    return { first: this.#first, last: this.#last, most };
  }

  // When and how long its answering thread waited for a CPU.
  get starved(): readonly Starved[] {
    return this.#starved;
  }

  // Log of all processes.
  get log(): string {
    return this.#log + (this.#current?.log ?? "");
  }

  get statuses(): readonly ContainerStatus[] {
    return this.#statuses;
  }

  start(): void {
    this.#running = Promise.all([this.#live(), this.#check(), this.#watchProcessor()]);
  }

  // Waits for a look that begins from now on: a process that a fault has just killed was ready at the last one.
  async ready(timeoutMs = READY_MS): Promise<number> {
    const nowMs = monotonicMs();
    const look = (): number | undefined => (this.isReady && this.#readyMs >= nowMs ? this.pid : undefined);
    return await waitFor("dns11 to be ready", look, { timeoutMs });
  }

  // Allows these exits while `work` runs; afterwards dns11 stays down for this time.
  async whileAllowed<T>(ends: readonly (number | string)[], work: () => Promise<T>, downMs = RESTART_MS): Promise<T> {
    this.#allowed = ends;
    this.#downMs = downMs;
    try {
      return await work();
    } finally {
      this.#allowed = [];
      this.#downMs = RESTART_MS;
    }
  }

  // Whether the process that runs has flushed its cache.
  async flush(): Promise<boolean> {
    const pid = this.pid;
    if (pid === undefined) return false;
    return await this.#client.flushCache().then(
      () => pid === this.pid,
      () => false,
    );
  }

  signal(signal: NodeJS.Signals): boolean {
    if (this.pid === undefined) return false;
    this.#current?.kill(signal);
    return true;
  }

  // Waits for the current process to exit.
  async ended(): Promise<void> {
    await this.#current?.exited;
  }

  // Stops it for good, gracefully; returns its exit code.
  async stop(): Promise<number | string | undefined> {
    this.#isEnding = true;
    this.#allowed = [0];
    this.#options.world.setDns11("down");
    const code = await this.#current?.stop();
    await this.#running;
    return code;
  }

  async #live(): Promise<void> {
    const { host, stateDir, prefix, env, settings, world } = this.#options;
    while (!this.#isEnding) {
      const dns11 = new Dns11(host, { stateDir, prefix, env, settings, args: ["--log-level", "info"] });
      this.#current = dns11;
      world.setDns11("runs", true);
      const exit = await dns11.exited;
      world.setDns11("down");
      this.#isReady = false;
      this.#ends.set(String(exit), (this.#ends.get(String(exit)) ?? 0) + 1);
      // Without an engine socket dns11 exits with an error, and its supervisor restarts it.
      const isExcused = exit === 1 && !world.isDockerdUp;
      if (!this.#allowed.includes(exit) && !isExcused) {
        this.#unexpectedExits.push({
          atMs: monotonicMs(),
          exit: String(exit),
          log: dns11.log.split("\n").slice(-20).join("\n"),
        });
      }
      this.#log += dns11.log;
      this.#current = undefined;
      await pause(this.#isEnding ? 0 : this.#downMs);
    }
  }

  async #check(): Promise<void> {
    for (; !this.#isEnding; await pause(LOOK_EVERY_MS)) {
      const { life } = this.#options.world;
      const lookMs = monotonicMs();
      const status = await this.#client.status().catch(() => undefined);
      const pid = this.pid;
      if (status === undefined || pid !== status.pid || life !== this.#options.world.life) continue;
      this.#statuses = status.containers;
      for (const member of this.#options.members) {
        const isServed = status.containers.some(
          ({ name, namespace, state }) =>
            name === member.name && namespace === member.namespace && state === "attached",
        );
        if (isServed) member.setServed(life);
      }
      this.#measure(pid, status.isReady && !this.#isReady);
      this.#isReady = status.isReady;
      if (status.isReady) this.#readyMs = lookMs;
    }
  }

  async #watchProcessor(): Promise<void> {
    let last = { pid: 0, atMs: monotonicMs(), waitedMs: 0 };
    for (; !this.#isEnding; await pause(STARVED_EVERY_MS)) {
      const now = { pid: this.pid ?? 0, atMs: monotonicMs(), waitedMs: waitedMsOf(this.pid ?? 0) };
      // A new process starts at zero.
      const ms = now.pid === last.pid ? now.waitedMs - last.waitedMs : now.waitedMs;
      if (ms > 0) this.#starved.push({ fromMs: last.atMs, toMs: now.atMs, ms });
      last = now;
    }
  }

  #measure(pid: number, isFirst: boolean): void {
    const cost = costOf(pid);
    if (cost === undefined) return;
    if (isFirst) this.#first = cost;
    this.#last = cost;
    this.#maxRssBytes = Math.max(this.#maxRssBytes, cost.rssBytes);
    this.#maxDescriptors = Math.max(this.#maxDescriptors, cost.descriptors);
  }
}

function costOf(pid: number): Cost | undefined {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return { rssBytes: Number(kilobytes) * BYTES_PER_KB, descriptors: readdirSync(`/proc/${pid}/fd`).length };
  } catch {
    // It ended in between.
    return undefined;
  }
}

// The second figure is the time its main thread was runnable without running, in nanoseconds.
function waitedMsOf(pid: number): number {
  try {
    const [, waitedNs] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
    return Number(waitedNs) / NS_PER_MS;
  } catch {
    // It ended in between.
    return 0;
  }
}
