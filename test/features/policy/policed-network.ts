// A machine between containers and an internet, of network namespaces: a bridge with containers on it, a route outside,
// and captures of what really arrives: the only meter that counts.
import { closeSync, openSync } from "node:fs";

import { addressBytes } from "../../../src/base/model/address.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import type { PolicedContainer, PolicedLink } from "../../../src/features/policy/table/container-rules.ts";
import { PolicyTable, type PolicyTableParts } from "../../../src/features/policy/table/policy-table.ts";
import { PacketSocket, macBytes } from "../../support/packets/frames.ts";
import { Greeters } from "../../support/servers/greeters.ts";
import { check } from "../../support/program/command.ts";
import { connectTo } from "../../support/rig/internet.ts";
import { Netns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";

export const GATEWAY = { 4: "10.77.0.1", 6: "fd77::1" } as const;
// Addresses of the internet, by family.
export const OUTSIDE = {
  allowed: "192.0.2.10",
  other: "192.0.2.20",
  allowed6: "2001:db8::10",
  other6: "2001:db8::20",
} as const;
const SUBNETS = [block("10.77.0.0", 24), block("fd77::", 64)];
const PORTS = [443, 22] as const;

export function bytes(address: string): Uint8Array {
  const found = addressBytes(address);
  if (found === undefined) throw new TypeError(`not an address: ${address}`);
  return found;
}

export function block(address: string, prefix: number): { bytes: Uint8Array; prefix: number } {
  return { bytes: bytes(address), prefix };
}

export class Member {
  readonly netns: Netns;
  readonly id: string;
  readonly address: string;
  readonly address6: string;
  linkLocal = "";
  mac = "";
  index = 0;
  readonly link: string;

  constructor(netns: Netns, number: number) {
    this.netns = netns;
    this.id = String(number).padStart(2, "0").repeat(32);
    this.address = `10.77.0.${number}`;
    this.address6 = `fd77::${number}`;
    this.link = `veth${number}`;
  }
}

export class PolicedNetwork implements AsyncDisposable {
  readonly runner = new NamespaceRunner();
  readonly memory = new NetlinkMemory();
  readonly machine: Netns;
  readonly outside: Netns;
  readonly members: Member[] = [];
  bridgeMac = "";
  readonly #fds = new Map<string, number>();
  readonly #sockets: PacketSocket[] = [];
  readonly #greeters = new Greeters();

  private constructor(machine: Netns, outside: Netns) {
    this.machine = machine;
    this.outside = outside;
  }

  static async create(members: number): Promise<PolicedNetwork> {
    const network = new PolicedNetwork(await Netns.create(), await Netns.create());
    await network.#build(members);
    return network;
  }

  async ip(netns: Netns, ...args: string[]): Promise<string> {
    return await check("ip", ["-n", netns.name, ...args]);
  }

  async nft(...args: string[]): Promise<string> {
    return (await this.machine.enter("nft", args)).stdout;
  }

  within<T>(netns: Netns, work: () => T): T {
    let fd = this.#fds.get(netns.name);
    if (fd === undefined) this.#fds.set(netns.name, (fd = openSync(netns.netnsPath, "r")));
    return this.runner.within(fd, work);
  }

  async table(options: Partial<PolicyTableParts> = {}): Promise<PolicyTable> {
    const within = <T>(work: () => T): T => this.within(this.machine, work);
    return await PolicyTable.open({ memory: this.memory, within, resolvers: [], ...options });
  }

  // Whether frames between containers pass the machine's own filters, as Kubernetes wants. Without the module they never do.
  async filterBridges(isOn: boolean): Promise<boolean> {
    const keys = ["iptables", "ip6tables"].map((name) => `net.bridge.bridge-nf-call-${name}=${isOn ? 1 : 0}`);
    return (await this.machine.enter("sysctl", ["-qw", ...keys])).code === 0;
  }

  // Frames of one interface from now on.
  async packets(netns: Netns, name: string): Promise<PacketSocket> {
    const index = await this.#indexOf(netns, name);
    const opened = this.within(netns, () => new PacketSocket(index));
    this.#sockets.push(opened);
    return opened;
  }

  policed(member: Member, options: Partial<PolicedContainer> = {}): PolicedContainer {
    return {
      ...{ id: member.id, startedAt: "now" },
      addresses: [bytes(member.address), bytes(member.address6)],
      rules: [],
      subnets: SUBNETS,
      isComplete: true,
      reachesPeers: true,
      reachesHost: false,
      isEnforced: true,
      ...options,
    };
  }

  linkOf(member: Member, options: Partial<PolicedLink> = {}): PolicedLink {
    return {
      index: member.index,
      name: member.link,
      mac: macBytes(member.mac),
      addresses: [member.address, member.address6, member.linkLocal].map(bytes),
      reachesPeers: true,
      bridgeMac: macBytes(this.bridgeMac),
      ...options,
    };
  }

  // The ARP and neighbour tables are filled, so that frames that are routed leave at once.
  async warmUp(): Promise<void> {
    for (const member of this.members)
      for (const address of [OUTSIDE.other, OUTSIDE.other6]) {
        const state = await this.connect(member, address, 443);
        if (state !== "open") throw new Error(`${member.address} ${address}: ${state}`);
      }
  }

  // What a TCP client in a container sees: open, refused, silent, or its error.
  async connect(member: Member, address: string, port: number): Promise<string> {
    return await connectTo(member.netns, address, port);
  }

  // A server that greets, on the ports of the rig, at all addresses of a namespace.
  async serve(netns: Netns, ports: readonly number[] = PORTS): Promise<void> {
    for (const port of ports) await this.#greeters.open(port, (listen) => this.within(netns, listen));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#sockets) each.close();
    await this.#greeters[Symbol.asyncDispose]();
    for (const fd of this.#fds.values()) closeSync(fd);
    this.runner.close();
    for (const { netns } of this.members) await netns[Symbol.asyncDispose]();
    await this.outside[Symbol.asyncDispose]();
    await this.machine[Symbol.asyncDispose]();
  }

  async #build(members: number): Promise<void> {
    const { machine, outside } = this;
    const outOf = (last: number): string[] => [
      `address add 198.51.100.${last}/24 dev out0`,
      `address add 2001:db8:1::${last}/64 dev out0 nodad`,
      "link set out0 up",
    ];
    await batch(machine, [
      "link add br0 type bridge",
      `address add ${GATEWAY[4]}/24 dev br0`,
      `address add ${GATEWAY[6]}/64 dev br0 nodad`,
      "link set br0 address 02:42:0a:4d:00:01",
      "link set br0 up",
      `link add out0 type veth peer name out0 netns ${outside.name}`,
      ...outOf(1),
    ]);
    this.bridgeMac = await this.macOf(machine, "br0");
    await batch(outside, [
      ...outOf(2),
      ...[OUTSIDE.allowed, OUTSIDE.other].map((address) => `address add ${address}/32 dev lo`),
      ...[OUTSIDE.allowed6, OUTSIDE.other6].map((address) => `address add ${address}/128 dev lo nodad`),
      "route add 10.77.0.0/24 via 198.51.100.1",
      "route add fd77::/64 via 2001:db8:1::1",
    ]);
    await batch(machine, ["route add default via 198.51.100.2", "route add default via 2001:db8:1::2"]);
    await machine.enter("sysctl", ["-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]);
    await this.filterBridges(false);
    for (let number = 2; number < members + 2; number++) await this.#addMember(number);
    await this.serve(outside);
  }

  async #addMember(number: number): Promise<void> {
    const member = new Member(await Netns.create(), number);
    this.members.push(member);
    const { machine } = this;
    const inside = member.netns;
    // Nobody else can have its address, and finding that out takes a second or two.
    await inside.enter("sysctl", ["-qw", "net.ipv6.conf.default.accept_dad=0"]);
    await batch(machine, [
      `link add ${member.link} type veth peer name eth0 netns ${inside.name}`,
      `link set ${member.link} master br0 up`,
    ]);
    await batch(inside, [
      `address add ${member.address}/24 dev eth0`,
      `address add ${member.address6}/64 dev eth0 nodad`,
      "link set eth0 up",
      `route add default via ${GATEWAY[4]}`,
      `route add default via ${GATEWAY[6]}`,
    ]);
    member.mac = await this.macOf(inside, "eth0");
    member.index = await this.#indexOf(machine, member.link);
    member.linkLocal = await waitFor("a link-local address", async () => {
      const shown = await this.ip(inside, "-6", "address", "show", "dev", "eth0", "scope", "link");
      return /tentative/.test(shown) ? undefined : /inet6 (fe80[^/]+)\/64/.exec(shown)?.[1];
    });
  }

  async macOf(netns: Netns, name: string): Promise<string> {
    return /link\/ether (\S+)/.exec(await this.ip(netns, "link", "show", name))?.[1] ?? "";
  }

  async #indexOf(netns: Netns, name: string): Promise<number> {
    return Number(/^(\d+):/.exec(await this.ip(netns, "link", "show", name))?.[1]);
  }
}

// One process for many commands of ip.
async function batch(netns: Netns, lines: readonly string[]): Promise<void> {
  await check("ip", ["-n", netns.name, "-batch", "-"], { input: lines.map((line) => `${line}\n`).join("") });
}

// One container for a policy, and one beside it.
export async function policedPair(): Promise<{ network: PolicedNetwork; policed: Member; other: Member }> {
  const network = await PolicedNetwork.create(2);
  const [policed, other] = network.members;
  if (policed === undefined || other === undefined) throw new Error("no two members");
  return { network, policed, other };
}
