/** dockerd process on an engine's host, one at a time: start until it responds, stop, and the log of all its runs. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { SYSTEM_PATH } from "./command.ts";
import type { EngineHost } from "../engine/engine-host.ts";
import { answers } from "./unix-http.ts";
import { waitFor } from "../rig/wait.ts";

export interface DaemonOptions {
  readonly host: EngineHost;
  readonly args: readonly string[];
  /** What dockerd is started by. */
  readonly prefix: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly socketPath: string;
  readonly logPath: string;
}

/**
 * Dockerd executes itself for each container, and containerd its shim and runc. These processes end soon, so most of their
 * garbage collections only take processor time.
 */
export const RARE_COLLECTIONS = { GOGC: "400" };

export class Daemon {
  readonly #options: DaemonOptions;
  #process: ChildProcess | undefined;

  constructor(options: DaemonOptions) {
    this.#options = options;
  }

  get pid(): number {
    const pid = this.#process?.pid;
    if (pid === undefined || !this.#isAlive()) throw new Error("dockerd is not running");
    return pid;
  }

  get logs(): string {
    return readFileSync(this.#options.logPath, "utf8");
  }

  async start(): Promise<void> {
    if (this.#isAlive()) throw new Error("dockerd is already running");
    const { host, args, prefix, env, socketPath, logPath } = this.#options;
    const [first = "", ...others] = [...prefix, "dockerd", ...args];
    const [command, rest] = host.command(first, others);
    const log = openSync(logPath, "a");
    const child = spawn(command, rest, {
      stdio: ["ignore", log, log],
      detached: true,
      // A newer dockerd would reject the docker command of an older machine.
      env: { ...process.env, ...RARE_COLLECTIONS, DOCKER_MIN_API_VERSION: "1.24", ...env, PATH: SYSTEM_PATH },
    });
    closeSync(log);
    child.unref();
    child.on("error", () => {});
    this.#process = child;
    await waitFor("dockerd to respond", async () => await this.#hasStarted(socketPath));
  }

  /** Stops it as a service manager does; if it hangs the test fails. */
  async stop(): Promise<void> {
    await this.kill("SIGTERM");
  }

  /** Waits for the exit if the signal terminates. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    process.kill(this.pid, signal);
    if (signal !== "SIGTERM" && signal !== "SIGKILL" && signal !== "SIGINT") return;
    await waitFor(`dockerd to exit after ${signal}`, () => (this.#isAlive() ? undefined : true));
  }

  async #hasStarted(socketPath: string): Promise<true | undefined> {
    if (!this.#isAlive())
      throw new Error(`dockerd exited while starting:\n${this.logs.split("\n").slice(-20).join("\n")}`);
    return (await answers(socketPath, "/_ping")) ? true : undefined;
  }

  #isAlive(): boolean {
    const child = this.#process;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }
}
