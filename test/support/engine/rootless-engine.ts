/**
 * Rootless engine of a test: dockerd and containerd of a normal user in namespaces that rootlesskit makes, on a simulated
 * machine of its own. All its processes are in one control group, by which they are found and removed however the test
 * ends: most are in no namespace that the test has made.
 */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CommandResult } from "../program/command.ts";
import { check, run } from "../program/command.ts";
import { Daemon } from "../program/daemon.ts";
import type { Leftovers } from "../rig/leftovers.ts";
import { netnsPathOf } from "../rig/leftovers.ts";
import { makeNetns, uniqueName } from "../rig/netns.ts";
import { hold, removeTracked } from "../rig/reaper.ts";
import { ControlGroup } from "./control-group.ts";
import { EngineAtSocket } from "./docker-host.ts";
import type { EngineHost } from "./engine-host.ts";
import { INSIDE, OWNER, startRootlessHost } from "./rootless-host.ts";
import { UserManager } from "./user-manager.ts";

/** A server here is on the machine: the user's network, slirp4netns, forwards queries to it. */
const RESOLV_CONF = "nameserver 127.0.0.1\n";

export async function startRootlessEngine(): Promise<RootlessEngine> {
  const id = uniqueName();
  const folder = await mkdtemp(join(tmpdir(), "d11-"));
  hold({ id, folder });
  try {
    await makeNetns(id);
    const host = await startRootlessHost({ netnsPath: netnsPathOf(id), folder, resolvConf: RESOLV_CONF });
    const engine = new RootlessEngine({ id, folder }, host);
    await engine.startDaemon();
    return engine;
  } catch (error) {
    await removeTracked({ id, folder });
    throw error;
  }
}

export class RootlessEngine extends EngineAtSocket implements AsyncDisposable {
  readonly id: string;
  readonly folder: string;
  /** The user's runtime directory, as the machine of the test sees it. */
  readonly runtime: string;
  readonly #host: EngineHost;
  readonly #group: ControlGroup;
  readonly #daemon: Daemon;

  constructor({ id, folder }: Leftovers & { readonly folder: string }, host: EngineHost) {
    const runtime = join(folder, "run");
    super(join(runtime, "docker.sock"));
    this.id = id;
    this.folder = folder;
    this.runtime = runtime;
    this.#host = host;
    this.#group = new ControlGroup(join(id, "rootless"));
    this.#daemon = new Daemon({
      host,
      // "dockerd" becomes the name of the script, and what follows its arguments.
      prefix: [
        ...this.#asUser(OWNER),
        "sh",
        "-c",
        `set -a; . ${INSIDE.engineSettings}; exec ${INSIDE.startEngine} "$@"`,
      ],
      args: [`--data-root=${join(folder, "data")}`],
      env: {},
      socketPath: this.socketPath,
      logPath: join(folder, "dockerd.log"),
    });
  }

  /** The user's network, outside of the engine's. */
  get netnsPath(): string {
    return netnsPathOf(this.id);
  }

  /** Changes the engine's machine, as its root. */
  async onMachine(command: string, ...args: readonly string[]): Promise<void> {
    await check(...this.#host.command(command, args));
  }

  /** Runs dns11 on the engine's machine as one of its users, who has set nothing. */
  async dns11As(user: number, ...args: readonly string[]): Promise<CommandResult> {
    const [command = "", ...rest] = this.dns11Command(user);
    return await run(command, [...rest, ...args]);
  }

  /** The command line that starts dns11 there, without its arguments. */
  dns11Command(user: number): string[] {
    // As in the unit: entering takes no program that grants rights.
    return this.commandAs(user, "setpriv", "--no-new-privs", INSIDE.node, INSIDE.program);
  }

  /** The command line that starts a program there as one of its users. */
  commandAs(user: number, ...words: readonly string[]): string[] {
    const [command, args] = this.#host.command("env", [...this.#asUser(user), ...words]);
    return [command, ...args];
  }

  async startDaemon(): Promise<void> {
    await this.#daemon.start();
  }

  /** With these variables of the script that starts it. */
  async restartDaemon(settings = ""): Promise<void> {
    await this.#daemon.stop();
    await this.onMachine("sh", "-c", 'printf %s "$0" > "$1"', settings, INSIDE.engineSettings);
    await this.#daemon.start();
  }

  /** The user's service manager, with one unit of its own. */
  async startUserManager(unit: string, text: string): Promise<UserManager> {
    await this.onMachine("sh", "-c", 'printf %s "$0" > "$1"', text, join(INSIDE.units, unit));
    return await UserManager.start(this.#host, join(this.id, "user"), this.#withRightsOf(OWNER));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeTracked({ id: this.id, folder: this.folder });
  }

  /** In the control group. */
  #asUser(user: number): string[] {
    return [...this.#group.prefix, ...this.#withRightsOf(user)];
  }

  /** With a user's environment. */
  #withRightsOf(user: number): string[] {
    const environment = [
      user === OWNER ? "HOME=/home/owner" : "HOME=/",
      ...(user === OWNER ? [`XDG_RUNTIME_DIR=${INSIDE.runtime}`] : []),
      "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
      "DOCKER_MIN_API_VERSION=1.24",
      "DNS11_METRICS_ADDR=off",
    ];
    const as = ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--clear-groups"];
    return [...as, "env", "-i", ...environment];
  }
}
