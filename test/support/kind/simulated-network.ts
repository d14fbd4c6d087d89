/**
 * Simulated Docker network without dockerd: a namespace with the bridge and gateway, one that simulates a KIND node
 * with an embedded resolver and dockerd's rules, and one that simulates a neighbour. For tests of what happens inside a
 * node. startPod() adds pods to the node.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandOptions, type CommandResult, run, stdoutOf, SYSTEM_PATH } from "../program/command.ts";
import { type DockerRules, writeDockerRules } from "../engine/docker-rules.ts";
import { kindCommand } from "./kind-entrypoint.ts";
import { netnsPathOf } from "../rig/leftovers.ts";
import { inNetns, makeNetns, Netns, type NetworkContext, uniqueName } from "../rig/netns.ts";
import { checkIn, type PodHost, setSysctls, disableIcmpRateLimit } from "./pod-host.ts";
import { hold, unrefChild, removeTracked } from "../rig/reaper.ts";
import { type RealServer, startDnsmasq } from "../servers/real-server.ts";
import { inTime } from "../rig/wait.ts";

export interface SimulatedNetworkOptions {
  readonly rules?: DockerRules | undefined;
  /** Content of the node's /etc/resolv.conf. */
  readonly resolvConf?: string | undefined;
  /**
   * Further configuration lines of the dnsmasq that simulates Docker's resolver. It knows SIMULATED_NETWORK.names and
   * has no upstream.
   */
  readonly resolverLines?: readonly string[] | undefined;
}

export const SIMULATED_NETWORK = {
  gateway: "10.88.0.1",
  node: "10.88.0.2",
  peer: "10.88.0.3",
  // Answers of the resolver.
  names: { web: "10.88.0.3", node: "10.88.0.2" },
  resolverPort: 41_053,
} as const;

const RESOLV_CONF = "nameserver 127.0.0.11\noptions ndots:0\n";

/**
 * Writes to /etc and /run stay in memory and are visible only in the node. resolv.conf, which tests read, is mounted as
 * Docker mounts it.
 */
const NODE_FILES = `
set -eu
folder=$1
mkdir "$folder/memory"
mount -t tmpfs tmpfs "$folder/memory"
mkdir "$folder/memory/upper" "$folder/memory/work"
mount -t overlay -o "lowerdir=/etc,upperdir=$folder/memory/upper,workdir=$folder/memory/work" overlay /etc
mount -t tmpfs tmpfs /run
hostname node
printf '127.0.0.1 localhost\\n%s node\\n' "$2" > /etc/hosts
printf 'hosts: files dns\\n' > /etc/nsswitch.conf
rm -f /etc/resolv.conf
: > /etc/resolv.conf
mount --bind "$folder/resolv.conf" /etc/resolv.conf
echo ready
exec sleep infinity
`;

export async function startSimulatedNetwork(options: SimulatedNetworkOptions = {}): Promise<SimulatedNetwork> {
  const { rules = "iptables-nft", resolverLines = [] } = options;
  const made: AsyncDisposable[] = [];
  try {
    const host = await Netns.create();
    made.unshift(host);
    const peer = await Netns.create();
    made.unshift(peer);
    const node = await SimulatedNode.start(
      rules === "iptables-legacy" ? "legacy" : "nft",
      options.resolvConf ?? RESOLV_CONF,
    );
    made.unshift(node);
    await joinNetwork(host, node, peer);
    const names = Object.entries(SIMULATED_NETWORK.names).map(([name, address]) => `host-record=${name},${address}`);
    const port = SIMULATED_NETWORK.resolverPort;
    const resolver = await startDnsmasq(node, { address: "127.0.0.11", port, lines: [...names, ...resolverLines] });
    made.unshift(resolver);
    await writeDockerRules(node.netnsPath, rules, { udp: port, tcp: port });
    return new SimulatedNetwork(host, node, peer, resolver);
  } catch (error) {
    for (const one of made) await one[Symbol.asyncDispose]();
    throw error;
  }
}

export class SimulatedNetwork implements AsyncDisposable {
  /** It has the bridge, whose address is the gateway. */
  readonly host: Netns;
  readonly node: SimulatedNode;
  /** Simulates another container of the network, named "web". */
  readonly peer: Netns;
  readonly resolver: RealServer;

  constructor(host: Netns, node: SimulatedNode, peer: Netns, resolver: RealServer) {
    this.host = host;
    this.node = node;
    this.peer = peer;
    this.resolver = resolver;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of [this.resolver, this.node, this.peer, this.host]) await one[Symbol.asyncDispose]();
  }
}

/** Network, mount and UTS namespaces, kept alive by one sleeping process. */
export class SimulatedNode implements AsyncDisposable, NetworkContext, PodHost {
  readonly iptables: "nft" | "legacy";
  /** On the machine: the file that is mounted as /etc/resolv.conf of the node's processes, as Docker does. */
  readonly resolvConfPath: string;
  readonly #id: string;
  readonly #folder: string;
  readonly #sleeper: ChildProcess;

  private constructor(iptables: "nft" | "legacy", id: string, folder: string) {
    this.iptables = iptables;
    this.#id = id;
    this.#folder = folder;
    this.resolvConfPath = join(folder, "resolv.conf");
    const inside = ["--mount", "--uts", "sh", "-c", NODE_FILES, "node", folder, SIMULATED_NETWORK.node];
    const [command = "", ...args] = inNetns(netnsPathOf(id), "unshare", inside);
    this.#sleeper = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    unrefChild(this.#sleeper);
  }

  static async start(iptables: "nft" | "legacy", resolvConf: string): Promise<SimulatedNode> {
    const id = uniqueName();
    const folder = await mkdtemp(join(tmpdir(), "d11-"));
    hold({ id, folder });
    try {
      await makeNetns(id);
      await writeFile(join(folder, "resolv.conf"), resolvConf);
      const node = new SimulatedNode(iptables, id, folder);
      await node.#ready();
      return node;
    } catch (error) {
      await removeTracked({ id, folder });
      throw error;
    }
  }

  get netnsPath(): string {
    return netnsPathOf(this.#id);
  }

  /** Prefix of a command that runs in the node with the node's files. */
  get prefix(): string[] {
    return ["nsenter", "--target", String(this.#sleeper.pid), "--mount", "--uts", "--net", "--"];
  }

  async enter(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    const [first = "", ...rest] = [...this.prefix, command, ...args];
    return await run(first, rest, options);
  }

  async resolvConf(): Promise<string> {
    return await readFile(this.resolvConfPath, "utf8");
  }

  /** Runs KIND's rewrite of rules and resolv.conf, without the sysctl that systemd sets later. */
  async rewrite(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const [command = "", ...args] = kindCommand("rewrite");
    stdoutOf(await this.enter(command, args, { env }), "KIND's rewrite");
  }

  async setSysctl(key: string, value: number): Promise<void> {
    await setSysctls(this.netnsPath, { [key]: value });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeTracked({ id: this.#id, folder: this.#folder });
  }

  async #ready(): Promise<void> {
    const { stdout, stderr } = this.#sleeper;
    let errors = "";
    stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    const ended = once(this.#sleeper, "close").then(() => {
      throw new Error(`the node did not start: ${errors.trim()}`);
    });
    await inTime(Promise.race([stdout === null ? undefined : once(stdout, "data"), ended]), "the node's files");
  }
}

/** The host first: its ends of the links are ports of the bridge. */
async function joinNetwork(host: Netns, node: SimulatedNode, peer: Netns): Promise<void> {
  await batch(host.netnsPath, [
    "link add br0 type bridge",
    `address add ${SIMULATED_NETWORK.gateway}/24 dev br0`,
    "link set br0 up",
    ...[node.netnsPath, peer.netnsPath].flatMap((path, index) => [
      `link add port${index} type veth peer name eth0 netns ${path.slice(path.lastIndexOf("/") + 1)}`,
      `link set port${index} master br0`,
      `link set port${index} up`,
    ]),
  ]);
  await setSysctls(host.netnsPath, { "net.ipv4.ip_forward": 1 });
  await disableIcmpRateLimit(host.netnsPath);
  for (const [path, address] of [
    [node.netnsPath, SIMULATED_NETWORK.node],
    [peer.netnsPath, SIMULATED_NETWORK.peer],
  ] as const) {
    await batch(path, [
      `address add ${address}/24 dev eth0`,
      "link set eth0 up",
      `route add default via ${SIMULATED_NETWORK.gateway} dev eth0`,
    ]);
  }
}

async function batch(netnsPath: string, lines: readonly string[]): Promise<void> {
  await checkIn(netnsPath, "ip", ["-batch", "-"], `${lines.join("\n")}\n`);
}
