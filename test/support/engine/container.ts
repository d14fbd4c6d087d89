/**
 * Container of an engine under test, and its networks. It is created with the docker command, as users do, and removed by the
 * API, which takes less processor time.
 */
import type { ContainerInspectInfo } from "dockerode";
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { stdoutOf } from "../program/command.ts";
import type { DockerHost } from "./docker-host.ts";
import { ensureImage } from "./image.ts";
import { inNetns, type NetworkContext } from "../rig/netns.ts";

export interface NetworkAttachment {
  readonly name: string;
  readonly aliases?: readonly string[] | undefined;
  readonly ip?: string | undefined;
  readonly ip6?: string | undefined;
  /** "container" or "container:alias", as for --link. */
  readonly links?: readonly string[] | undefined;
}

export interface ContainerOptions {
  readonly name?: string | undefined;
  /** Default: the engine's default bridge. */
  readonly networks?: readonly (string | NetworkAttachment)[] | undefined;
  readonly hostname?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly dns?: readonly string[] | undefined;
  /** Further arguments of `docker run`. */
  readonly args?: readonly string[] | undefined;
  readonly image?: string | undefined;
  readonly command?: readonly string[] | undefined;
}

export interface NetworkOptions {
  readonly internal?: boolean | undefined;
  readonly ipv6?: boolean | undefined;
  readonly subnet?: string | undefined;
  readonly subnet6?: string | undefined;
  /** Further arguments of `docker network create`. */
  readonly args?: readonly string[] | undefined;
}

let networks6 = 0;

/** Creates a network and returns its id. An old dockerd has no default IPv6 subnets, so they are chosen here. */
export async function createNetwork(host: DockerHost, name: string, options: NetworkOptions = {}): Promise<string> {
  const subnet6 =
    options.subnet6 ?? (options.ipv6 === true ? `fd11:0:0:${(networks6 += 1).toString(16)}::/64` : undefined);
  return await host.docker(
    "network",
    "create",
    ...(options.internal === true ? ["--internal"] : []),
    ...(options.subnet === undefined ? [] : ["--subnet", options.subnet]),
    ...(subnet6 === undefined ? [] : ["--ipv6", "--subnet", subnet6]),
    ...(options.args ?? []),
    name,
  );
}

export async function removeNetwork(host: DockerHost, name: string): Promise<void> {
  await host.docker("network", "rm", name);
}

/** Starts it on all of its networks at once. */
export async function runContainer(host: DockerHost, options: ContainerOptions = {}): Promise<Container> {
  const image = options.image ?? (await ensureImage(host));
  const [first, ...others] = (options.networks ?? []).map(attachmentOf);
  const args = [...containerArgs(options, first), image, ...(options.command ?? [])];
  if (others.length === 0) return await Container.of(host, await host.docker("run", "--detach", ...args));
  const id = await host.docker("create", ...args);
  for (const other of others) await connect(host, id, other);
  await host.docker("start", id);
  return await Container.of(host, id);
}

export class Container implements AsyncDisposable, NetworkContext {
  readonly id: string;
  readonly host: DockerHost;
  #info: ContainerInspectInfo;

  private constructor(host: DockerHost, info: ContainerInspectInfo) {
    this.host = host;
    this.id = info.Id;
    this.#info = info;
  }

  /** A container that was created elsewhere. */
  static async of(host: DockerHost, idOrName: string): Promise<Container> {
    return new Container(host, await inspect(host, idOrName));
  }

  get name(): string {
    return this.#info.Name.slice(1);
  }

  /** Process id of its first process, valid where the engine's process ids are; 0 if it is not running. */
  get pid(): number {
    return this.#info.State.Pid;
  }

  get netnsPath(): string {
    return `/proc/${this.pid}/ns/net`;
  }

  /** The engine's path of the network namespace, in dockerd's mount namespace. */
  get sandboxKey(): string {
    return this.#info.NetworkSettings.SandboxKey;
  }

  address(network: string): string {
    return this.#endpoint(network).IPAddress;
  }

  address6(network: string): string {
    return this.#endpoint(network).GlobalIPv6Address;
  }

  /** Queries the engine again; the other members return the last result. */
  async inspect(): Promise<ContainerInspectInfo> {
    this.#info = await inspect(this.host, this.id);
    return this.#info;
  }

  /** Runs a program of the machine in the container's network namespace. */
  async enter(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    const [first = "", ...rest] = inNetns(this.netnsPath, command, args);
    return await this.host.exec(first, rest, options);
  }

  /** Runs a program of the container inside it. */
  async exec(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    const interactive = options.input === undefined && options.until === undefined ? [] : ["--interactive"];
    return await this.host.dockerCommand(["exec", ...interactive, this.id, command, ...args], options);
  }

  /** Read from outside: a `docker exec` takes ten times as long. */
  async readFile(path: string): Promise<string> {
    const { Pid: pid } = (await inspect(this.host, this.id)).State;
    return stdoutOf(await this.host.exec("cat", [`/proc/${pid}/root${path}`]), `cat ${path}`);
  }

  async connect(network: string | NetworkAttachment): Promise<void> {
    await connect(this.host, this.id, attachmentOf(network));
    await this.inspect();
  }

  async disconnect(network: string): Promise<void> {
    await this.host.docker("network", "disconnect", network, this.id);
    await this.inspect();
  }

  async start(): Promise<void> {
    await this.#change("start");
  }

  async stop(): Promise<void> {
    await this.#change("stop");
  }

  async restart(): Promise<void> {
    await this.#change("restart");
  }

  async remove(): Promise<void> {
    await this.host.delete(`/containers/${this.id}?force=true&v=true`);
  }

  /** Unlike remove() it ignores a container that is already gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.remove().catch(() => undefined);
  }

  async #change(verb: string): Promise<void> {
    await this.host.docker(verb, this.id);
    await this.inspect();
  }

  #endpoint(network: string): ContainerInspectInfo["NetworkSettings"]["Networks"][string] {
    const endpoint = this.#info.NetworkSettings.Networks[network];
    if (endpoint === undefined) throw new Error(`${this.name} is not on network ${network}`);
    return endpoint;
  }
}

async function inspect(host: DockerHost, idOrName: string): Promise<ContainerInspectInfo> {
  return (await host.api(`/containers/${idOrName}/json`)) as ContainerInspectInfo;
}

async function connect(host: DockerHost, container: string, network: NetworkAttachment): Promise<void> {
  await host.docker("network", "connect", ...attachmentArgs(network, "--alias"), network.name, container);
}

function containerArgs(options: ContainerOptions, network: NetworkAttachment | undefined): string[] {
  return [
    ...(options.name === undefined ? [] : ["--name", options.name]),
    ...(options.hostname === undefined ? [] : ["--hostname", options.hostname]),
    ...Object.entries(options.labels ?? {}).flatMap(([key, value]) => ["--label", `${key}=${value}`]),
    ...(options.dns ?? []).flatMap((server) => ["--dns", server]),
    ...(network === undefined ? [] : ["--network", network.name, ...attachmentArgs(network, "--network-alias")]),
    ...(options.args ?? []),
  ];
}

function attachmentArgs(network: NetworkAttachment, aliasFlag: string): string[] {
  return [
    ...(network.aliases ?? []).flatMap((alias) => [aliasFlag, alias]),
    ...(network.ip === undefined ? [] : ["--ip", network.ip]),
    ...(network.ip6 === undefined ? [] : ["--ip6", network.ip6]),
    ...(network.links ?? []).flatMap((link) => ["--link", link]),
  ];
}

function attachmentOf(network: string | NetworkAttachment): NetworkAttachment {
  return typeof network === "string" ? { name: network } : network;
}
