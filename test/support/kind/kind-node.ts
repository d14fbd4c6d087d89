/**
 * Owns a container that plays a KIND node: KIND's labels and name, and KIND's entrypoint with the machine's tools to run
 * it. There is no Kubernetes in it; pods are put behind it by startPod().
 */
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { stdoutOf } from "../program/command.ts";
import { type Container, type NetworkAttachment, runContainer } from "../engine/container.ts";
import type { Engine } from "../engine/engine.ts";
import { ensureImage, MACHINE_IMAGE } from "../engine/image.ts";
import { KIND_READY, kindCommand } from "./kind-entrypoint.ts";
import { MACHINE_RIGHTS, machineVolumes } from "../engine/machine-container.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { type PodHost, setSysctl, disableIcmpRateLimit } from "./pod-host.ts";
import { waitFor } from "../rig/wait.ts";
import { textOf } from "../rig/text-of.ts";

export interface KindNodeOptions {
  /** Of the container, and its hostname. */
  readonly name: string;
  readonly networks: readonly (string | NetworkAttachment)[];
  readonly cluster?: string | undefined;
  readonly role?: "control-plane" | "worker" | "external-load-balancer" | undefined;
  /** Who rewrites rules and resolv.conf at each start: KIND, or nobody until rewrite() is called. */
  readonly entrypoint?: "kind" | "none" | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Further ones of `docker run`. */
  readonly args?: readonly string[] | undefined;
}

/** Does not wait for the entrypoint: what happens meanwhile is a matter of tests. */
export async function runKindNode(engine: Engine, options: KindNodeOptions): Promise<KindNode> {
  const { name, cluster = "kind", role = "worker", entrypoint = "kind" } = options;
  const container = await runContainer(engine, {
    name,
    hostname: name,
    networks: options.networks,
    labels: { "io.x-k8s.kind.cluster": cluster, "io.x-k8s.kind.role": role, ...options.labels },
    image: await ensureImage(engine, MACHINE_IMAGE),
    args: [
      ...MACHINE_RIGHTS,
      ...machineVolumes(),
      ...Object.entries(options.env ?? {}).map(([key, value]) => `--env=${key}=${value}`),
      ...(options.args ?? []),
    ],
    command: kindCommand(entrypoint === "kind" ? "node" : "idle"),
  });
  // What a node passes on to the gateway is refused there.
  await disableIcmpRateLimit(engine.netnsPath);
  return new KindNode(container);
}

export class KindNode implements AsyncDisposable, NetworkContext, PodHost {
  readonly container: Container;
  #iptables: PodHost["iptables"] = "nft";
  #vip = "";

  constructor(container: Container) {
    this.container = container;
  }

  get name(): string {
    return this.container.name;
  }

  /** Another one after each start. */
  get netnsPath(): string {
    return this.container.netnsPath;
  }

  /** What KIND chose, as of the last waitForEntrypoint() or rewrite(). */
  get iptables(): PodHost["iptables"] {
    return this.#iptables;
  }

  /** The address that pods ask in the place of 127.0.0.11, from the same moment on. */
  get vip(): string {
    return this.#vip;
  }

  address(network: string): string {
    return this.container.address(network);
  }

  async gateway(network: string): Promise<string> {
    const info = await this.container.inspect();
    return info.NetworkSettings.Networks[network]?.Gateway ?? "";
  }

  /** Of this start; throws with the entrypoint's words when it has failed. */
  async waitForEntrypoint(): Promise<void> {
    await waitFor(`the entrypoint of ${this.name}`, async () => await this.#hasStarted());
  }

  /** KIND's way with rules and resolv.conf once more, or for the first time. */
  async rewrite(): Promise<void> {
    const [command = "", ...args] = kindCommand("rewrite");
    stdoutOf(await this.exec(command, args), `KIND's rewrite in ${this.name}`);
    this.#learn("/run/kind-rewritten");
  }

  async enter(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    return await this.container.enter(command, args, options);
  }

  async exec(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    return await this.container.exec(command, args, options);
  }

  async resolvConf(): Promise<string> {
    return await this.container.readFile("/etc/resolv.conf");
  }

  async setSysctl(key: string, value: number): Promise<void> {
    await setSysctl(this.netnsPath, key, value);
  }

  /** Its namespace goes and with it the links of its pods; the entrypoint runs again. */
  async restart(): Promise<void> {
    await this.container.restart();
  }

  async logs(): Promise<string> {
    const { stdout, stderr } = await this.container.host.dockerCommand(["logs", this.container.id]);
    return stdout + stderr;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.container[Symbol.asyncDispose]();
  }

  async #hasStarted(): Promise<true | undefined> {
    if (this.#learn(KIND_READY)) return true;
    // It may have been started by somebody else, with another process.
    const { Running: isRunning, ExitCode: code } = (await this.container.inspect()).State;
    if (isRunning) return undefined;
    throw new Error(`the entrypoint of ${this.name} ended with ${code}: ${(await this.logs()).trim()}`);
  }

  /** Read from the machine: a `docker exec` for each look takes longer than the entrypoint. */
  #learn(path: string): boolean {
    const text = textOf(`/proc/${this.container.pid}/root${path}`);
    const [, mode, vip = ""] = /^(nft|legacy) (.*)\n/.exec(text) ?? [];
    if (mode === undefined) return false;
    this.#iptables = mode as PodHost["iptables"];
    this.#vip = vip === "none" ? "" : vip;
    return true;
  }
}
