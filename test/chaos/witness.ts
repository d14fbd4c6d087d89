// Records the history of a run: a program in each container asks for names of containers that come and go, of zones of which one is not
// forwarded, of a cache that is flushed, and of two servers in an order. history.ts says what must hold of it.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import type { Engine } from "../support/engine/engine.ts";
import { ensureImage } from "../support/engine/image.ts";
import { SYSTEM_PATH } from "../support/program/command.ts";
import type { SettingTexts } from "../support/program/dns11.ts";
import { addAddress, inNetns } from "../support/rig/netns.ts";
import { unrefChild } from "../support/rig/reaper.ts";
import { inTime, pause } from "../support/rig/wait.ts";
import { type Answer, type History, type Served, type Span, checkHistory } from "./history.ts";
import type { Violation } from "./judge.ts";
import type { Member } from "./member.ts";
import { monotonicMs } from "./monotonic.ts";
import type { Supervisor } from "./supervisor.ts";
import type { World } from "./world.ts";

const SERVERS = ["10.53.0.8", "10.53.0.9"];
const PROGRAM = fileURLToPath(new URL("./witness-main.js", import.meta.url));
const MORTALS = 3;
const LIVES_MS = 1_500;
const FLUSH_EVERY_MS = 3_000;

type Line = Answer | Served | "ready";
type Process = ChildProcessByStdio<Writable, Readable, null>;

export class Witness {
  readonly #engine: Engine;
  readonly #world: World;
  readonly #members: readonly Member[];
  readonly #answers: Answer[] = [];
  readonly #served: Served[] = [];
  readonly #ended = new Map<string, number>();
  readonly #flushes: Span[] = [];
  readonly #clients = new Map<string, Process>();
  readonly #processes = new Set<Process>();
  #names: readonly string[] = [];
  #isEnding = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(engine: Engine, world: World, members: readonly Member[]) {
    this.#engine = engine;
    this.#world = world;
    this.#members = members;
  }

  // What dns11 needs for it: two servers in an order, and names that it forwards to nobody.
  static readonly settings: SettingTexts = {
    dns: ["host", ...SERVERS.map((address) => `/witness.test/${address}`), "/denied.witness.test/"].join(","),
  };

  async start(supervisor: Supervisor): Promise<void> {
    for (const address of SERVERS) await addAddress(this.#engine.netnsPath, address);
    await this.#spawn(this.#engine.netnsPath, ["server", ...SERVERS]);
    this.#running = Promise.all([this.#liveAndDie(), this.#flush(supervisor), this.#follow()]);
  }

  get counts(): string {
    return `${this.#answers.length} answers, ${this.#served.length} queries at servers, ${this.#ended.size} containers that ended, ${this.#flushes.length} flushes`;
  }

  async end(log: string, toleranceMs: number): Promise<readonly Violation[]> {
    this.#isEnding = true;
    await this.#running;
    for (const each of this.#processes) each.stdin.end();
    const history: History = {
      answers: this.#answers,
      served: this.#served,
      ended: this.#ended,
      flushes: this.#flushes,
      unable: this.#world.unable,
      firstDown: downSpans(log),
    };
    return checkHistory(history, toleranceMs);
  }

  // A container's program ends with its namespace.
  async #follow(): Promise<void> {
    for (; !this.#isEnding; await pause(100)) {
      for (const { name, namespace, netnsPath, unsteady } of this.#members) {
        const key = `${name} ${namespace}`;
        if (unsteady !== undefined || this.#clients.has(key)) continue;
        for (const [known, client] of this.#clients) {
          if (!known.startsWith(`${name} `)) continue;
          client.stdin.end();
          this.#clients.delete(known);
        }
        const client = await this.#spawn(netnsPath, ["client", name]).catch(() => undefined);
        if (client === undefined) continue;
        this.#clients.set(key, client);
        client.stdin.write(`${JSON.stringify(this.#names)}\n`);
      }
    }
  }

  async #liveAndDie(): Promise<void> {
    const image = await ensureImage(this.#engine);
    const living: string[] = [];
    for (let made = 1; !this.#isEnding; made++) {
      const name = `mortal-${made}`;
      const { code } = await this.#engine.dockerCommand(["run", "--detach", "--network", "n1", "--name", name, image]);
      if (code !== 0) await this.#engine.dockerCommand(["rm", "--force", name]);
      else living.push(name);
      this.#tell([...this.#names, name].slice(-2 * MORTALS));
      await pause(LIVES_MS);
      const oldest = living.length > MORTALS ? living.shift() : undefined;
      if (oldest === undefined) continue;
      while (!this.#isEnding) {
        if ((await this.#engine.dockerCommand(["rm", "--force", oldest])).code === 0) break;
        await pause(LIVES_MS);
      }
      if (!this.#isEnding) this.#ended.set(oldest, monotonicMs());
    }
  }

  #tell(names: readonly string[]): void {
    this.#names = names;
    for (const client of this.#clients.values()) client.stdin.write(`${JSON.stringify(names)}\n`);
  }

  async #flush(supervisor: Supervisor): Promise<void> {
    for (; !this.#isEnding; await pause(FLUSH_EVERY_MS)) {
      const fromMs = monotonicMs();
      if (await supervisor.flush()) this.#flushes.push({ fromMs, toMs: monotonicMs() });
    }
  }

  async #spawn(netnsPath: string, args: readonly string[]): Promise<Process> {
    const [command = "", ...rest] = inNetns(netnsPath, process.execPath, [PROGRAM, ...args]);
    const env = { ...process.env, PATH: SYSTEM_PATH };
    const child = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"], detached: true, env });
    child.stdin.on("error", () => undefined);
    unrefChild(child);
    this.#processes.add(child);
    const ended = once(child, "close").then(() => this.#processes.delete(child));
    const ready = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout }).on("line", (text) => {
        const line = JSON.parse(text) as Line;
        if (line === "ready") resolve();
        else if ("server" in line) this.#served.push(line);
        else this.#answers.push(line);
      });
    });
    await inTime(Promise.race([ready, ended]), "a witness");
    return child;
  }
}

// When the first server was down, as the log says; its times are of the wall clock, which a fault may step, so the end is open.
function downSpans(log: string): readonly Span[] {
  const isDown = log
    .split("\n")
    .some((line) => line.includes(`host(${SERVERS[0]})`) && line.includes('"upstream is down"'));
  return isDown ? [{ fromMs: -Infinity, toMs: Infinity }] : [];
}
