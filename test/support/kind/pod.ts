/**
 * Owns a pod: a network namespace of its own behind one that plays a KIND node, with the links, routes and masquerading
 * that a Kubernetes node gives it. For DNS a pod is nothing else; there is no container around it.
 */
import { type CommandOptions, type CommandResult, run } from "../program/command.ts";
import { inNetns, Netns, type NetworkContext } from "../rig/netns.ts";
import { checkIn, type PodHost, setSysctl, disableIcmpRateLimit } from "./pod-host.ts";
import { waitFor } from "../rig/wait.ts";

export interface PodOptions {
  /** "ptp" is KIND's own: a pair of devices for each pod. "bridge": all pods of a node on a bridge. */
  readonly cni?: "ptp" | "bridge" | undefined;
  readonly family?: "ipv4" | "ipv6" | "dual" | undefined;
  /** Of 10.244.0.0/24 and of fd00:10:244::/64; the next free one unless told. */
  readonly address?: string | undefined;
  readonly address6?: string | undefined;
  /**
   * Whether packets that a bridge passes on meet the rules of iptables; only for "bridge", whose default is the kernel's.
   */
  readonly bridgeNfCall?: 0 | 1 | undefined;
}

const POD_GATEWAY = "10.244.0.1";
export const POD_GATEWAY6 = "fd00:10:244::1";
const BRIDGE = "cni0";
const FIRST_HOST = 2;
const HOSTS = 250;

/** Which destinations are other pods and keep the pod's address, as KIND's network agent has it. */
const POD_NETS = { iptables: "10.244.0.0/16", ip6tables: "fd00:10:244::/56" };
/** Only the first of several pods makes it. */
const MASQUERADE = `
set -eu
iptables=$1 pods=$2
"$iptables" -w -t nat -N KIND-MASQ-AGENT 2>/dev/null || exec "$iptables" -w -t nat -n -L KIND-MASQ-AGENT
"$iptables" -w -t nat -A KIND-MASQ-AGENT -d "$pods" -j RETURN
"$iptables" -w -t nat -A KIND-MASQ-AGENT -j MASQUERADE
"$iptables" -w -t nat -A POSTROUTING -m addrtype ! --dst-type LOCAL -j KIND-MASQ-AGENT
`;

let started = 0;

/**
 * It has the nameservers that the node's resolv.conf names now; later changes do not reach it, as none reach a real pod.
 */
export async function startPod(node: PodHost, options: PodOptions = {}): Promise<Pod> {
  const count = (started += 1);
  const host = FIRST_HOST + (count % HOSTS);
  const { cni = "ptp", family = "ipv4", address = `10.244.0.${host}`, address6 = `fd00:10:244::${host}` } = options;
  const addresses = family === "ipv4" ? [address] : family === "ipv6" ? [address6] : [address, address6];
  const text = await node.resolvConf();
  const netns = await Netns.create();
  try {
    const link = { device: `veth-p${count}`, pod: netns.name, addresses };
    await prepareNode(node, options);
    if (cni === "bridge") await makeBridge(node.netnsPath);
    await checkIn(node.netnsPath, "ip", ["-batch", "-"], cni === "ptp" ? ptpLines(link) : portLines(link));
    await checkIn(netns.netnsPath, "ip", ["-batch", "-"], podLines(cni, addresses));
    await waitFor(`the link of ${netns.name}`, async () => await isUp(netns));
    return new Pod(netns, { device: cni === "ptp" ? link.device : BRIDGE, addresses, resolvConf: text });
  } catch (error) {
    await netns[Symbol.asyncDispose]();
    throw error;
  }
}

/** Until then the kernel drops what is sent: it lets packets through a new link when it finds the time. */
async function isUp({ netnsPath }: Netns): Promise<true | undefined> {
  return / state UP /.test(await checkIn(netnsPath, "ip", ["-o", "link", "show", "eth0"])) ? true : undefined;
}

interface PodFacts {
  readonly device: string;
  readonly addresses: readonly string[];
  readonly resolvConf: string;
}

export class Pod implements AsyncDisposable, NetworkContext {
  /** The node's device through which the pod's packets come in. */
  readonly device: string;
  /** The first of its addresses is IPv4 unless it has none. */
  readonly addresses: readonly string[];
  readonly resolvConf: string;
  readonly #netns: Netns;

  constructor(netns: Netns, { device, addresses, resolvConf }: PodFacts) {
    this.#netns = netns;
    this.device = device;
    this.addresses = addresses;
    this.resolvConf = resolvConf;
  }

  get address(): string {
    return this.addresses[0] ?? "";
  }

  /** The node's at the pod's beginning, a loopback among them kept as it is. */
  get nameservers(): string[] {
    return [...this.resolvConf.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  }

  get netnsPath(): string {
    return this.#netns.netnsPath;
  }

  /** With the machine's files: a question has to name its server. */
  async enter(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    return await this.#netns.enter(command, args, options);
  }

  /** Its link goes with it, and so does every route through that. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#netns[Symbol.asyncDispose]();
  }
}

type Link = { readonly device: string; readonly pod: string; readonly addresses: readonly string[] };

async function prepareNode(
  { netnsPath, iptables }: PodHost,
  { family = "ipv4", bridgeNfCall }: PodOptions,
): Promise<void> {
  const settings: Record<string, number> = {
    "net.ipv4.ip_forward": 1,
    "net.ipv4.conf.all.rp_filter": 1,
    "net.ipv4.conf.default.rp_filter": 1,
  };
  if (family !== "ipv4") {
    settings["net.ipv6.conf.all.disable_ipv6"] = 0;
    settings["net.ipv6.conf.default.disable_ipv6"] = 0;
    settings["net.ipv6.conf.all.forwarding"] = 1;
  }
  if (bridgeNfCall !== undefined) {
    settings["net.bridge.bridge-nf-call-iptables"] = bridgeNfCall;
    settings["net.bridge.bridge-nf-call-ip6tables"] = bridgeNfCall;
  }
  for (const [key, value] of Object.entries(settings)) await setSysctl(netnsPath, key, value);
  await disableIcmpRateLimit(netnsPath);
  const programs = (["iptables", "ip6tables"] as const).slice(
    family === "ipv6" ? 1 : 0,
    family === "ipv4" ? 1 : undefined,
  );
  for (const program of programs) {
    const args = ["-c", MASQUERADE, "masquerade", `${program}-${iptables}`, POD_NETS[program]];
    await checkIn(netnsPath, "sh", args);
  }
}

/** The node's end has the gateway's address alone, and a route to this one pod. */
function ptpLines({ device, pod, addresses }: Link): string {
  return lines([
    `link add ${device} type veth peer name eth0 netns ${pod}`,
    `link set ${device} up`,
    ...addresses.flatMap((address) => [
      `address add ${withLength(gatewayOf(address), "host")} dev ${device}${nodadOf(address)}`,
      `route add ${withLength(address, "host")} dev ${device}`,
    ]),
  ]);
}

/** It may be there from another pod; where it could not be made, its port says so. */
async function makeBridge(netnsPath: string): Promise<void> {
  const [command = "", ...args] = inNetns(netnsPath, "ip", ["link", "add", BRIDGE, "type", "bridge"]);
  await run(command, args);
}

function portLines({ device, pod, addresses }: Link): string {
  return lines([
    `link set ${BRIDGE} up`,
    ...addresses.map(
      (address) => `address replace ${withLength(gatewayOf(address), "net")} dev ${BRIDGE}${nodadOf(address)}`,
    ),
    `link add ${device} type veth peer name eth0 netns ${pod}`,
    `link set ${device} master ${BRIDGE}`,
    `link set ${device} up`,
  ]);
}

function podLines(cni: "ptp" | "bridge", addresses: readonly string[]): string {
  return lines([
    "link set eth0 up",
    ...addresses.flatMap((address) => [
      `address add ${withLength(address, cni === "ptp" ? "host" : "net")} dev eth0${nodadOf(address)}`,
      ...(cni === "ptp" ? [`route add ${withLength(gatewayOf(address), "host")} dev eth0`] : []),
      `route add default via ${gatewayOf(address)} dev eth0`,
    ]),
  ]);
}

function lines(commands: readonly string[]): string {
  return `${commands.join("\n")}\n`;
}

function gatewayOf(address: string): string {
  return address.includes(":") ? POD_GATEWAY6 : POD_GATEWAY;
}

function withLength(address: string, length: "host" | "net"): string {
  const [host, net] = address.includes(":") ? [128, 64] : [32, 24];
  return `${address}/${length === "host" ? host : net}`;
}

/** Without the second that the kernel takes to see whether somebody else has it. */
function nodadOf(address: string): string {
  return address.includes(":") ? " nodad" : "";
}
