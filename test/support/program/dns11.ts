/**
 * Running dns11 of a test: the program as shipped, started from the command line, queried through its control socket,
 * and stopped or killed. It has its own state folder, so that a test never meets the machine's instance.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ControlClient } from "../../../src/api/control-client.ts";
import { keeperPath } from "../../../src/api/state-paths.ts";
import { variableOf } from "../../../src/config/setting.ts";
import type { PlainKey } from "../../../src/config/keys.ts";
import { POOL_THREADS, POOL_VARIABLE } from "../../../src/base/limits.ts";
import { PROGRAM } from "./built.ts";
import type { ContainerStatus, Status } from "../../../src/api/status.ts";
import { type CommandOptions, type CommandResult, SYSTEM_PATH, run } from "./command.ts";
import { getJson, postJson } from "./unix-http.ts";
import type { Leftovers } from "../rig/leftovers.ts";
import { keepLog } from "../rig/evidence.ts";
import { hold, release } from "../rig/reaper.ts";
import { countStart } from "../rig/started.ts";
import { inTime, waitFor } from "../rig/wait.ts";

/** Settings as text, by key. */
export type SettingTexts = Readonly<Partial<Record<PlainKey, string>>>;

export interface Dns11Options {
  readonly args?: readonly string[];
  /** They become variables. */
  readonly settings?: SettingTexts;
  readonly env?: NodeJS.ProcessEnv;
  /**
   * Prefix of the command: `strace ...`, `setpriv ...`. By default it limits the program to the capabilities that it
   * keeps.
   */
  readonly prefix?: readonly string[];
  readonly stateDir?: string;
  /** It finds the engine and its state folder by itself, as without flags; `stateDir` is where that folder must be. */
  readonly isOnItsOwn?: boolean;
  /** Another program than the compiled one: an installed package. */
  readonly program?: readonly string[];
  /** The folder that is the program's root, where that is not the test's. */
  readonly root?: string;
  /** How long it may take to be ready, where that is more than usual. */
  readonly readyMs?: number;
}

/**
 * The capabilities that a unit or a container grants. With more, or with fewer threads than the unit sets, dns11 executes itself
 * again, which takes a quarter of the CPU time of a start and matters to few tests.
 */
const NO_MORE_THAN_NEEDED = [
  "setpriv",
  "--bounding-set=-all,+chown,+dac_read_search,+net_admin,+sys_ptrace,+sys_admin",
  "--inh-caps=-all",
];

/** For tests that are not about its end: a keeper takes a fifth of the processor time of a start. */
export const WITHOUT_KEEPER: NodeJS.ProcessEnv = { DNS11_KEEPER: "off" };

export function variables(settings: SettingTexts = {}): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(settings).map(([key, text]) => [variableOf(key), text]));
}

/** A busy machine needs some of them; a process that cannot start needs no more. */
const REPLACE_TRIES = 20;
let started = 0;

/** Runs a command that ends by itself. */
export async function dns11(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  countStart("command");
  return await run(process.execPath, [PROGRAM, ...args], options);
}

function makeStateDir(): string {
  return mkdtempSync(join(tmpdir(), "d11-state-"));
}

/** Starts it and waits until it is ready: every running container is attached or has a reason why not. */
export async function startDns11(engine: { readonly host: string }, options: Dns11Options = {}): Promise<Dns11> {
  const instance = new Dns11(engine.host, options);
  try {
    await instance.waitUntilReady(options.readyMs);
    return instance;
  } catch (error) {
    const log = instance.log;
    await instance[Symbol.asyncDispose]();
    throw new Error(`dns11 did not become ready: ${log}`, { cause: error });
  }
}

/**
 * Starts a process that takes over from this one, and waits until it is ready and the old one has ended. On a busy machine
 * the old process may not pause in time; then it goes on, and the new one ends.
 */
export async function replaceDns11(
  engine: { readonly host: string },
  old: Dns11,
  options: Dns11Options = {},
): Promise<Dns11> {
  const args = [...(options.args ?? []), "--replace"];
  for (let tries = 1; ; tries++) {
    const next = new Dns11(engine.host, { ...options, args, stateDir: old.stateDir });
    try {
      await waitFor("the new process to serve or to end", async () => {
        const status = await next.status().catch(() => undefined);
        return (status?.pid === next.pid && status.isReady) || !next.isRunning ? true : undefined;
      });
      if (next.isRunning) {
        await old.ended();
        return next;
      }
      if (!old.isRunning) throw new Error("neither process goes on");
      if (tries === REPLACE_TRIES) throw new Error(`it was tried ${tries} times`);
    } catch (error) {
      const { log } = next;
      await next[Symbol.asyncDispose]();
      throw new Error(`dns11 was not replaced: ${log}`, { cause: error });
    }
  }
}

export class Dns11 implements AsyncDisposable {
  readonly stateDir: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<number>;
  readonly #ownsStateDir: boolean;
  readonly #root: string;
  readonly #leftovers: Leftovers;
  #log = "";

  constructor(host: string, options: Dns11Options = {}) {
    this.#ownsStateDir = options.stateDir === undefined;
    this.#root = options.root ?? "/";
    const program = options.program ?? [process.execPath, PROGRAM];
    const isAsByUnit = options.prefix === undefined && options.program === undefined;
    const prefix = options.prefix ?? (isAsByUnit ? NO_MORE_THAN_NEEDED : []);
    this.stateDir = options.stateDir ?? makeStateDir();
    this.#leftovers = {
      id: `d11-${process.pid}-dns11-${(started += 1)}`,
      stateDir: this.stateDir,
      folder: this.#ownsStateDir ? this.stateDir : undefined,
    };
    hold(this.#leftovers);
    countStart("dns11");
    const place = options.isOnItsOwn === true ? [] : ["-H", host, "--state-dir", this.stateDir];
    const words = ["run", ...place, "--log-level", "debug", ...(options.args ?? [])];
    const [command = "", ...args] = [...prefix, ...program, ...words];
    this.#child = spawn(command, args, {
      stdio: ["ignore", "inherit", "pipe"],
      // Several run at once and cannot share the default address.
      env: {
        ...process.env,
        DNS11_METRICS_ADDR: "off",
        ...(isAsByUnit && { [POOL_VARIABLE]: String(POOL_THREADS) }),
        ...variables(options.settings),
        ...options.env,
        PATH: SYSTEM_PATH,
      },
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.#log += chunk.toString()));
    keepLog(`dns11 (process ${this.pid})`, () => this.#log);
    this.#exited = once(this.#child, "close").then(([code, signal]) => (code ?? (signal as string)) as number);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get log(): string {
    return this.#log;
  }

  /** Waits until the log matches: what a line is about may be seen before the line has come through the pipe. */
  async logs(pattern: RegExp): Promise<void> {
    await waitFor(`${pattern} in the log`, () => (pattern.test(this.#log) ? true : undefined));
  }

  /** Exit code, or the name of the signal. */
  get exited(): Promise<number | string> {
    return this.#exited;
  }

  // The same, without waiting for stderr to close: its keeper may hold it open.
  async ended(): Promise<number | string> {
    await waitFor("dns11 to end", () => (this.isRunning ? undefined : true));
    return this.#child.exitCode ?? this.#child.signalCode ?? "";
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async status(): Promise<Status> {
    return (await getJson(this.#controlPath, "/v1/status")) as Status;
  }

  /**
   * In the folder of its engine, of which there is one. Running a command for each poll would take more time than
   * everything else.
   */
  get #controlPath(): string {
    const place = join(this.#root, this.stateDir);
    const [folder = ""] = readdirSync(place);
    return join(place, folder, "control.sock");
  }

  /** What it replies to a request of any path. */
  async get(path: string): Promise<unknown> {
    return await getJson(this.#controlPath, path);
  }

  get client(): ControlClient {
    return new ControlClient(this.#controlPath);
  }

  async container(name: string): Promise<ContainerStatus | undefined> {
    return (await this.status()).containers.find((container) => container.name === name);
  }

  async waitUntilReady(timeoutMs?: number): Promise<void> {
    await waitFor(
      "dns11 to be ready",
      async () => {
        if (!this.isRunning) throw new Error(`dns11 exited: ${this.#log}`);
        const status = await this.status().catch(() => undefined);
        return status?.isReady === true ? true : undefined;
      },
      timeoutMs === undefined ? {} : { timeoutMs },
    );
  }

  /** Resolves when the settings of the file are in force, and throws with the mistakes in it. */
  async reload(): Promise<void> {
    await postJson(this.#controlPath, "/v1/reload", {});
  }

  async flushCache(): Promise<void> {
    await postJson(this.#controlPath, "/v1/cache/flush", {});
  }

  /** Waits until a container is in this state. */
  async waitFor(name: string, state: ContainerStatus["state"]): Promise<ContainerStatus> {
    let last: ContainerStatus | undefined;
    const check = async (): Promise<ContainerStatus | undefined> => {
      last = await this.container(name);
      return last?.state === state ? last : undefined;
    };
    try {
      return await waitFor(`${name} to be ${state}`, check);
    } catch (error) {
      throw new Error(`Last status: ${JSON.stringify(last)}`, { cause: error });
    }
  }

  /** Waits until it is known in which containers the kernel answers: the process serves all of them first. */
  async waitForKernel(): Promise<void> {
    await waitFor("the kernel's answers to be tried in all containers", async () =>
      (await this.status()).containers.some(({ answers }) => answers?.isPending) ? undefined : true,
    );
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Graceful stop; returns the exit code. */
  async stop(): Promise<number | string> {
    if (this.isRunning) this.kill("SIGTERM");
    return await inTime(this.#exited, "dns11 to end");
  }

  // Where a policy is enforced, the keeper goes on without dns11.
  async #endRefusing(): Promise<void> {
    if (!existsSync(this.stateDir)) return;
    for (const folder of readdirSync(this.stateDir, { withFileTypes: true }).filter((each) => each.isDirectory())) {
      const path = keeperPath(join(this.stateDir, folder.name));
      if (!existsSync(path)) continue;
      // Few tests have a keeper, and none needs this before.
      const { Predecessor } = await import("../../../src/keeper/predecessor.ts");
      const found = await Predecessor.find(path).catch(() => undefined);
      if ((found?.refusing ?? 0) > 0) await found?.endKeeper();
      else found?.channel.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) this.kill("SIGKILL");
    await inTime(this.#exited, "dns11 to end");
    await this.#endRefusing();
    if (this.#ownsStateDir) rmSync(this.stateDir, { recursive: true, force: true });
    release(this.#leftovers);
  }
}
