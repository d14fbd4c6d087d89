/**
 * dockerd of a test with its containerd, in its own network namespace and with all files in one temporary folder. It
 * shares nothing with a dockerd of the machine or of another test, so a test may restart, kill or replace it.
 */
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { run } from "../program/command.ts";
import { Daemon } from "../program/daemon.ts";
import { ControlGroup } from "./control-group.ts";
import { EngineAtSocket } from "./docker-host.ts";
import { EngineHost } from "./engine-host.ts";
import type { Leftovers } from "../rig/leftovers.ts";
import { netnsPathOf } from "../rig/leftovers.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { inNetns, makeNetns, uniqueName } from "../rig/netns.ts";
import { hold, removeTracked } from "../rig/reaper.ts";
import { countStart } from "../rig/started.ts";
import { GIVEN_ARGS, rootfsOf, type Suite } from "./suite.ts";

export interface EngineOptions {
  /** By default the newest, which most users have, and whose containers take two thirds of the processor time that those of 20.10 do. */
  readonly suite?: Suite | undefined;
  /**
   * The engine's /etc/resolv.conf. By default it names the loopback of the engine's own network namespace, where a test
   * may run a server, so that no query leaves.
   */
  readonly resolvConf?: string | undefined;
  readonly args?: readonly string[] | undefined;
  readonly daemonJson?: Readonly<Record<string, unknown>> | undefined;
  readonly liveRestore?: boolean | undefined;
  /** Dockerd has a control group of version 2 of its own, as under systemd. */
  readonly hasControlGroup?: boolean | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

const LOOPBACK_RESOLV_CONF = "nameserver 127.0.0.1\n";

export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const id = uniqueName();
  countStart("engine");
  const rootfs = await rootfsOf(options.suite ?? "forky");
  // Short, because the names of sockets below it have a maximum length.
  const folder = await mkdtemp(join(tmpdir(), "d11-"));
  hold({ id, folder });
  try {
    await makeNetns(id);
    const resolvConf = options.resolvConf ?? LOOPBACK_RESOLV_CONF;
    const host = await EngineHost.start({ netnsPath: netnsPathOf(id), folder, rootfs, resolvConf });
    const engine = new Engine({ id, folder }, host, options);
    await writeFile(join(folder, "daemon.json"), daemonJsonOf(options));
    await engine.startDaemon();
    return engine;
  } catch (error) {
    await removeTracked({ id, folder });
    throw error;
  }
}

export class Engine extends EngineAtSocket implements AsyncDisposable, NetworkContext {
  readonly id: string;
  readonly folder: string;
  readonly execRoot: string;
  readonly dataRoot: string;
  /** A process in the engine's network and mount namespaces that runs all the time, also while dockerd is down. */
  readonly hostPid: number;
  readonly #daemon: Daemon;
  #version = "";

  constructor(leftovers: Leftovers & { readonly folder: string }, host: EngineHost, options: EngineOptions) {
    super(join(leftovers.folder, "docker.sock"));
    this.id = leftovers.id;
    this.folder = leftovers.folder;
    this.execRoot = join(this.folder, "exec");
    this.dataRoot = join(this.folder, "data");
    this.hostPid = host.pid;
    this.#daemon = new Daemon({
      host,
      args: [...this.#daemonArgs(), ...GIVEN_ARGS, ...(options.args ?? [])],
      // Removed with the engine, whose id is the name of its parent; those of containers are beside it.
      prefix: options.hasControlGroup === true ? new ControlGroup(join(this.id, "dockerd")).prefix : [],
      env: options.env ?? {},
      socketPath: this.socketPath,
      logPath: join(this.folder, "dockerd.log"),
    });
  }

  /** Address for the docker command and DOCKER_HOST. */
  get host(): string {
    return `unix://${this.socketPath}`;
  }

  /** Process id of dockerd on the machine; it changes with each start. */
  get pid(): number {
    return this.#daemon.pid;
  }

  get netnsPath(): string {
    return netnsPathOf(this.id);
  }

  get version(): string {
    return this.#version;
  }

  /** Runs a program in the engine's network namespace, with the machine's files. */
  async enter(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    const [first = "", ...rest] = inNetns(this.netnsPath, command, args);
    return await run(first, rest, options);
  }

  async startDaemon(): Promise<void> {
    await this.#daemon.start();
    this.#version = ((await this.api("/version")) as { Version: string }).Version;
  }

  async stopDaemon(): Promise<void> {
    await this.#daemon.stop();
  }

  async restartDaemon(): Promise<void> {
    await this.stopDaemon();
    await this.startDaemon();
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await this.#daemon.kill(signal);
  }

  /** Logs of dockerd and containerd since the engine's first start. */
  logs(): string {
    return this.#daemon.logs;
  }

  /** Kills dockerd, containerd, shims and containers without a graceful stop. */
  async [Symbol.asyncDispose](): Promise<void> {
    await removeTracked({ id: this.id, folder: this.folder });
  }

  #daemonArgs(): string[] {
    return [
      `--config-file=${join(this.folder, "daemon.json")}`,
      `--data-root=${this.dataRoot}`,
      `--exec-root=${this.execRoot}`,
      `--pidfile=${join(this.folder, "docker.pid")}`,
      `--host=${this.host}`,
      // The name for finding the processes of all containers again.
      `--cgroup-parent=/${this.id}`,
      "--exec-opt=native.cgroupdriver=cgroupfs",
    ];
  }
}

function daemonJsonOf({ daemonJson, liveRestore }: EngineOptions): string {
  return JSON.stringify({ ...(liveRestore === undefined ? {} : { "live-restore": liveRestore }), ...daemonJson });
}
