/**
 * Container that simulates a KIND node: KIND's labels and name, and a simulation of its entrypoint run with the
 * machine's programs. It runs no Kubernetes; startPod() adds pods.
 */
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { stdoutOf } from "../program/command.ts";
import { type Container, type NetworkAttachment, runContainer } from "../engine/container.ts";
import type { Engine } from "../engine/engine.ts";
import { ensureImage, MACHINE_IMAGE } from "../engine/image.ts";
import { KIND_READY, kindCommand } from "./kind-entrypoint.ts";
import { MACHINE_RIGHTS, machineVolumes } from "../engine/machine-container.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { type PodHost, setSysctls, disableIcmpRateLimit } from "./pod-host.ts";
import { waitFor } from "../rig/wait.ts";
import { textOf } from "../rig/text-of.ts";

type ClusterTool = "kind" | "k3d" | "minikube";

export interface KindNodeOptions {
  /** Name and hostname of the container. */
  readonly name: string;
  readonly networks: readonly (string | NetworkAttachment)[];
  /** Whose labels it has, and whose entrypoint with "kind". */
  readonly tool?: ClusterTool | undefined;
  readonly cluster?: string | undefined;
  readonly role?: "control-plane" | "worker" | "external-load-balancer" | undefined;
  /** "kind": rules and resolv.conf are rewritten at each start. "none": only when rewrite() is called. */
  readonly entrypoint?: "kind" | "none" | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Further arguments of `docker run`. */
  readonly args?: readonly string[] | undefined;
}

/** Does not wait for the entrypoint, so that tests can act while it runs. */
export async function runKindNode(engine: Engine, options: KindNodeOptions): Promise<KindNode> {
  const { name, entrypoint = "kind", tool = "kind" } = options;
  const container = await runContainer(engine, {
    name,
    hostname: name,
    networks: options.networks,
    labels: { ...labelsOf(tool, options), ...options.labels },
    image: await ensureImage(engine, MACHINE_IMAGE),
    args: [
      ...rightsOn(engine),
      ...machineVolumes(),
      ...Object.entries(options.env ?? {}).map(([key, value]) => `--env=${key}=${value}`),
      ...(options.args ?? []),
    ],
    command: kindCommand(entrypoint === "none" ? "idle" : tool === "k3d" ? "k3d" : "node"),
  });
  // Packets that a node forwards to the gateway are refused there.
  await disableIcmpRateLimit(engine.netnsPath);
  return new KindNode(container);
}

/** minikube's entrypoint is a copy of KIND's. */
function labelsOf(tool: ClusterTool, options: KindNodeOptions): Record<string, string> {
  const { cluster = tool, role = "worker" } = options;
  switch (tool) {
    case "kind":
      return { "io.x-k8s.kind.cluster": cluster, "io.x-k8s.kind.role": role };
    case "k3d":
      return { app: "k3d", "k3d.cluster": cluster, "k3d.role": role === "worker" ? "agent" : "server" };
    case "minikube":
      return {
        "created_by.minikube.sigs.k8s.io": "true",
        "name.minikube.sigs.k8s.io": cluster,
        "mode.minikube.sigs.k8s.io": cluster,
        "role.minikube.sigs.k8s.io": "",
      };
  }
}

/** A newer dockerd adds the capabilities that the machine has, and refuses to drop one that it lacks. */
function rightsOn({ version }: Engine): readonly string[] {
  if (version.startsWith("20.10.")) return MACHINE_RIGHTS;
  return MACHINE_RIGHTS.filter((right) => !right.startsWith("--cap-drop="));
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

  /** Changes with each start. */
  get netnsPath(): string {
    return this.container.netnsPath;
  }

  /** The iptables variant that KIND chose, as of the last waitForEntrypoint() or rewrite(). */
  get iptables(): PodHost["iptables"] {
    return this.#iptables;
  }

  /** The address that pods query instead of 127.0.0.11, read together with `iptables`. */
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

  /** Waits for the entrypoint of the current start; throws with its output if it failed. */
  async waitForEntrypoint(): Promise<void> {
    await waitFor(`the entrypoint of ${this.name}`, async () => await this.#hasStarted());
  }

  /** Runs KIND's rewrite of rules and resolv.conf (again). */
  async rewrite(): Promise<void> {
    const [command = "", ...args] = kindCommand("rewrite");
    stdoutOf(await this.exec(command, args), `KIND's rewrite in ${this.name}`);
    this.#readState("/run/kind-rewritten");
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
    await setSysctls(this.netnsPath, { [key]: value });
  }

  /** Its namespace is replaced, which removes the links of its pods; the entrypoint runs again. */
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
    if (this.#readState(KIND_READY)) return true;
    // It may have been started by another process.
    const { Running: isRunning, ExitCode: code } = (await this.container.inspect()).State;
    if (isRunning) return undefined;
    throw new Error(`the entrypoint of ${this.name} ended with ${code}: ${(await this.logs()).trim()}`);
  }

  /** Read through /proc: a `docker exec` for each poll takes longer than the entrypoint. */
  #readState(path: string): boolean {
    const text = textOf(`/proc/${this.container.pid}/root${path}`);
    const [, mode, vip = ""] = /^(nft|legacy) (.*)\n/.exec(text) ?? [];
    if (mode === undefined) return false;
    this.#iptables = mode as PodHost["iptables"];
    this.#vip = vip === "none" ? "" : vip;
    return true;
  }
}
