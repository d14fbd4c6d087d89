/**
 * Container of an engine under test, and its networks. They are created, changed and removed by the engine's API with what
 * the docker command would send, because that takes less processor time; with rare arguments, by the docker command.
 */
import type { ContainerInspectInfo } from "dockerode";
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { stdoutOf } from "../program/command.ts";
import type { DockerHost } from "./docker-host.ts";
import { ensureImage } from "./image.ts";
import { keepPlace } from "../rig/evidence.ts";
import { countStart } from "../rig/started.ts";
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
  /** Called when the container has been created. */
  readonly beforeStart?: (id: string) => Promise<void>;
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

/** Arguments in the form --flag=value that are lists in the API. */
const LISTS = new Map(
  Object.entries({
    "--add-host": "ExtraHosts",
    "--cap-add": "CapAdd",
    "--cap-drop": "CapDrop",
    "--dns-option": "DnsOptions",
    "--dns-search": "DnsSearch",
    "--security-opt": "SecurityOpt",
    "--volume": "Binds",
  }),
);
const ENV = "--env";
const TMPFS = "--tmpfs";

let networks6 = 0;

/** Creates a network and returns its id. An old dockerd has no default IPv6 subnets, so they are chosen here. */
export async function createNetwork(host: DockerHost, name: string, options: NetworkOptions = {}): Promise<string> {
  const { internal = false, subnet, args } = options;
  const subnet6 =
    options.subnet6 ?? (options.ipv6 === true ? `fd11:0:0:${(networks6 += 1).toString(16)}::/64` : undefined);
  const subnets = [subnet, subnet6].filter((each) => each !== undefined);
  if (args === undefined) {
    const IPAM = { Driver: "default", Config: subnets.map((Subnet) => ({ Subnet })) };
    const config = { Name: name, CheckDuplicate: true, Driver: "bridge", Internal: internal, IPAM };
    return await create(host, "/networks/create", { ...config, EnableIPv6: subnet6 !== undefined });
  }
  return await host.docker(
    "network",
    "create",
    ...(internal ? ["--internal"] : []),
    ...(subnet6 === undefined ? [] : ["--ipv6"]),
    ...subnets.flatMap((each) => ["--subnet", each]),
    ...args,
    name,
  );
}

export async function removeNetwork(host: DockerHost, name: string): Promise<void> {
  await host.delete(networkPath(name));
}

/** Starts it on all of its networks at once. */
export async function runContainer(host: DockerHost, options: ContainerOptions = {}): Promise<Container> {
  countStart("container");
  const image = options.image ?? (await ensureImage(host));
  const [first, ...others] = (options.networks ?? []).map(attachmentOf);
  const id = await createContainer(host, options, first, image);
  for (const other of others) await connect(host, id, other);
  await options.beforeStart?.(id);
  await start(host, id);
  return await Container.of(host, id);
}

/** On a busy machine a swarm's manager may not answer within the time that Docker gives it. */
async function start(host: DockerHost, id: string, attempts = 3): Promise<void> {
  try {
    await host.post(`/containers/${id}/start`);
  } catch (error) {
    if (attempts === 1 || !String(error).includes("context deadline exceeded")) throw error;
    await start(host, id, attempts - 1);
  }
}

async function createContainer(
  host: DockerHost,
  options: ContainerOptions,
  network: NetworkAttachment | undefined,
  image: string,
): Promise<string> {
  const { name, hostname, labels, dns = [], args = [], command } = options;
  const further = configOf(args);
  if (further === undefined) {
    return await host.docker("create", ...containerArgs(options, network), ...args, image, ...(command ?? []));
  }
  const { Env, ...more } = further;
  const HostConfig = { NetworkMode: network?.name ?? "default", Dns: dns, Links: network?.links, ...more };
  const path = name === undefined ? "/containers/create" : `/containers/create?name=${encodeURIComponent(name)}`;
  return await create(host, path, {
    ...{ Image: image, Hostname: hostname, Labels: labels, Cmd: command, Env, HostConfig },
    // Without an entry of its own, the engine makes the plain one.
    ...(network === undefined || Object.keys(network).length === 1
      ? {}
      : { NetworkingConfig: { EndpointsConfig: { [network.name]: endpointOf(network) } } }),
  });
}

interface FurtherConfig {
  readonly [list: string]: string[] | Record<string, string> | undefined;
  readonly Env: string[];
  readonly Tmpfs: Record<string, string>;
}

/** Undefined if any is rare. */
function configOf(args: readonly string[]): FurtherConfig | undefined {
  const lists: Record<string, string[]> = {};
  const Env: string[] = [];
  const Tmpfs: Record<string, string> = {};
  for (const arg of args) {
    const [, flag = "", value = ""] = /^(--[a-z-]+)=(.+)$/s.exec(arg) ?? [];
    const list = LISTS.get(flag);
    if (list !== undefined) (lists[list] ??= []).push(value);
    else if (flag === ENV) Env.push(value);
    else if (flag === TMPFS) {
      const [path = "", options = ""] = value.split(":");
      Tmpfs[path] = options;
    } else return undefined;
  }
  return { ...lists, Env, Tmpfs };
}

/** Returns the id of what is created. */
async function create(host: DockerHost, path: string, config: unknown): Promise<string> {
  return ((await host.post(path, config)) as { readonly Id: string }).Id;
}

export class Container implements AsyncDisposable, NetworkContext {
  readonly id: string;
  readonly host: DockerHost;
  #info: ContainerInspectInfo;

  private constructor(host: DockerHost, info: ContainerInspectInfo) {
    this.host = host;
    this.id = info.Id;
    this.#info = info;
    keepPlace(this.name, async () => (await this.enter("nft", ["list", "ruleset"])).stdout);
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

  /** On all of its networks. */
  get addresses(): string[] {
    const all = Object.values(this.#info.NetworkSettings.Networks);
    return all.flatMap(({ IPAddress, GlobalIPv6Address }) => [IPAddress, GlobalIPv6Address]).filter(Boolean);
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
    await this.host.post(`${networkPath(network)}/disconnect`, { Container: this.id });
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
    await this.host.post(`/containers/${this.id}/${verb}`);
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
  const config = { Container: container, EndpointConfig: endpointOf(network) };
  await host.post(`${networkPath(network.name)}/connect`, config);
}

/** A network's name may have any characters. */
function networkPath(name: string): string {
  return `/networks/${encodeURIComponent(name)}`;
}

function containerArgs(options: ContainerOptions, network: NetworkAttachment | undefined): string[] {
  return [
    ...(options.name === undefined ? [] : ["--name", options.name]),
    ...(options.hostname === undefined ? [] : ["--hostname", options.hostname]),
    ...Object.entries(options.labels ?? {}).flatMap(([key, value]) => ["--label", `${key}=${value}`]),
    ...(options.dns ?? []).flatMap((server) => ["--dns", server]),
    ...(network === undefined ? [] : ["--network", network.name, ...attachmentArgs(network)]),
  ];
}

function attachmentArgs(network: NetworkAttachment): string[] {
  return [
    ...(network.aliases ?? []).flatMap((alias) => ["--network-alias", alias]),
    ...(network.ip === undefined ? [] : ["--ip", network.ip]),
    ...(network.ip6 === undefined ? [] : ["--ip6", network.ip6]),
    ...(network.links ?? []).flatMap((link) => ["--link", link]),
  ];
}

function endpointOf({ aliases, ip, ip6, links }: NetworkAttachment): unknown {
  const hasAddress = ip !== undefined || ip6 !== undefined;
  return {
    Aliases: aliases,
    Links: links,
    ...(hasAddress ? { IPAMConfig: { IPv4Address: ip, IPv6Address: ip6 } } : {}),
  };
}

function attachmentOf(network: string | NetworkAttachment): NetworkAttachment {
  return typeof network === "string" ? { name: network } : network;
}
