/**
 * Owns one dockerd process at a time on an engine's host: its start until it answers, its end, and what it logged over
 * all of its lives.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { SYSTEM_PATH } from "./command.ts";
import type { EngineHost } from "../engine/engine-host.ts";
import { answers } from "./unix-http.ts";
import { waitFor } from "../rig/wait.ts";

export interface DaemonOptions {
  readonly host: EngineHost;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly socketPath: string;
  readonly logPath: string;
}

export class Daemon {
  readonly #options: DaemonOptions;
  #process: ChildProcess | undefined;

  constructor(options: DaemonOptions) {
    this.#options = options;
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined || !this.#isAlive()) throw new Error("dockerd does not run");
    return pid;
  }

  get logs(): string {
    return readFileSync(this.#options.logPath, "utf8");
  }

  async start(): Promise<void> {
    if (this.#isAlive()) throw new Error("dockerd runs already");
    const { host, args, env, socketPath, logPath } = this.#options;
    const [command, rest] = host.command("dockerd", args);
    const log = openSync(logPath, "a");
    const child = spawn(command, rest, {
      stdio: ["ignore", log, log],
      detached: true,
      // A newer dockerd would turn away the docker command of an older machine.
      env: { ...process.env, DOCKER_MIN_API_VERSION: "1.24", ...env, PATH: SYSTEM_PATH },
    });
    closeSync(log);
    child.unref();
    child.on("error", () => {});
    this.#process = child;
    await waitFor("dockerd's answer", async () => await this.#hasStarted(socketPath), { timeoutMs: 60_000 });
  }

  /** As a service manager would stop it; one that hangs is ended all the same, but the test fails. */
  async stop(): Promise<void> {
    await this.kill("SIGTERM");
  }

  /** Waits for the end where the signal means one. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    process.kill(this.pid, signal);
    if (signal !== "SIGTERM" && signal !== "SIGKILL" && signal !== "SIGINT") return;
    await waitFor(`dockerd's end after ${signal}`, () => (this.#isAlive() ? undefined : true), { timeoutMs: 30_000 });
  }

  async #hasStarted(socketPath: string): Promise<true | undefined> {
    if (!this.#isAlive())
      throw new Error(`dockerd ended at its start:\n${this.logs.split("\n").slice(-20).join("\n")}`);
    return (await answers(socketPath, "/_ping")) ? true : undefined;
  }

  #isAlive(): boolean {
    const child = this.#process;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }
}
