/**
 * docker-in-docker: a dockerd inside a container of an engine, as in continuous integration. 127.0.0.11 is then served
 * at two levels, which a resolver that enters namespaces can confuse.
 */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { SYSTEM_PATH, check } from "../program/command.ts";
import { type Container, type NetworkAttachment, runContainer } from "./container.ts";
import { EngineAtSocket } from "./docker-host.ts";
import type { Engine } from "./engine.ts";
import { ensureImage, MACHINE_IMAGE } from "./image.ts";
import { GIVES_RESOURCES, MACHINE_RIGHTS, machineVolumes } from "./machine-container.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { answers } from "../program/unix-http.ts";
import { waitFor } from "../rig/wait.ts";

export interface InnerEngineOptions {
  readonly name?: string | undefined;
  /** Networks of the outer engine. */
  readonly networks?: readonly (string | NetworkAttachment)[] | undefined;
  /** Folders of the machine, such as the project's, that appear inside under the same path, read-only. */
  readonly mounts?: readonly string[] | undefined;
  /** Further arguments of dockerd. */
  readonly args?: readonly string[] | undefined;
}

const RIGHTS = [...MACHINE_RIGHTS, "--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"];

const RUN_DOCKERD = `
set -eu
mount -o remount,rw /proc/sys
mount -o remount,rw /sys
exec dockerd "$@"
`;

/** A dockerd from this version on starts no container without that capability. */
const NEEDS_RESOURCES = 29;

/** Why no such dockerd can run inside a container here, as a reason to skip a test; false if it can. */
export function whyNoInnerEngine(major: number, givesResources = GIVES_RESOURCES): string | false {
  if (major < NEEDS_RESOURCES || givesResources) return false;
  return `Docker ${major} inside a container needs CAP_SYS_RESOURCE, which this machine does not have`;
}

/** The same for the dockerd of the machine, which is the one that runs inside. */
export async function whyNoMachineInside(): Promise<string | false> {
  const version = await check("dockerd", ["--version"]);
  return whyNoInnerEngine(Number.parseInt(/version (\d+)/.exec(version)?.[1] ?? "0", 10));
}

let started = 0;

export async function startInnerEngine(engine: Engine, options: InnerEngineOptions = {}): Promise<InnerEngine> {
  started += 1;
  const folder = join(engine.folder, `inner-${started}`);
  await mkdir(join(folder, "data"), { recursive: true });
  const node = dirname(dirname(process.execPath));
  const container = await runContainer(engine, {
    name: options.name,
    networks: options.networks,
    image: await ensureImage(engine, MACHINE_IMAGE),
    args: [
      ...RIGHTS,
      // On a disk: overlayfs does not work on the overlayfs of a container.
      `--volume=${join(folder, "data")}:/var/lib/docker`,
      `--volume=${folder}:/inner`,
      ...machineVolumes([...(node.startsWith("/usr") ? [] : [node]), ...(options.mounts ?? [])]),
    ],
    command: ["sh", "-c", RUN_DOCKERD, "dockerd", ...dockerdArgs(engine, started), ...(options.args ?? [])],
  });
  const inner = new InnerEngine(engine, container, folder);
  await inner.ready();
  return inner;
}

/**
 * Control group of the inner containers, beside that of the container: in a unified hierarchy a group with processes
 * has no child groups. It is below the outer engine's group and removed with it.
 */
function dockerdArgs(engine: Engine, count: number): string[] {
  return [
    "--host=unix:///var/run/docker.sock",
    "--host=unix:///inner/docker.sock",
    `--cgroup-parent=/${engine.id}/inner-${count}`,
    "--exec-opt=native.cgroupdriver=cgroupfs",
  ];
}

export class InnerEngine extends EngineAtSocket implements AsyncDisposable, NetworkContext {
  /** The container that runs it. */
  readonly container: Container;
  readonly #outer: Engine;

  constructor(outer: Engine, container: Container, folder: string) {
    // Inside it is also /var/run/docker.sock.
    super(join(folder, "docker.sock"));
    this.#outer = outer;
    this.container = container;
  }

  async ready(): Promise<void> {
    await waitFor("the inner dockerd to respond", async () => await this.#hasStarted());
  }

  /**
   * Runs inside, with the container's privileges and process ids, because the process ids of this engine are valid only
   * there.
   */
  override async exec(
    command: string,
    args: readonly string[] = [],
    options: CommandOptions = {},
  ): Promise<CommandResult> {
    return await this.container.exec(command, args, options);
  }

  async enter(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    return await this.exec(command, args, options);
  }

  /**
   * Long-running program inside. It ends with the container, not with the returned process, which only relays its
   * output.
   */
  spawn(command: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
    const exec = ["-H", this.#outer.host, "exec", "--interactive", this.container.id, command, ...args];
    return spawn("docker", exec, { ...options, env: { ...process.env, ...options.env, PATH: SYSTEM_PATH } });
  }

  async logs(): Promise<string> {
    const { stdout, stderr } = await this.#outer.dockerCommand(["logs", this.container.id]);
    return stdout + stderr;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.container[Symbol.asyncDispose]();
  }

  async #hasStarted(): Promise<true | undefined> {
    if (await answers(this.socketPath, "/_ping")) return true;
    if ((await this.container.inspect()).State.Running) return undefined;
    throw new Error(
      `the inner dockerd exited while starting:\n${(await this.logs()).split("\n").slice(-20).join("\n")}`,
    );
  }
}
