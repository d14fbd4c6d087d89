/**
 * Simulated pod: a network namespace behind a simulated KIND node, with the links, routes and masquerading that a
 * Kubernetes node sets up. That is all DNS needs; there is no container around it.
 */
import type { CommandOptions, CommandResult } from "../program/command.ts";
import { Netns, type NetworkContext } from "../rig/netns.ts";
import { checkIn, NO_ICMP_RATE_LIMIT, type PodHost } from "./pod-host.ts";
import { waitFor } from "../rig/wait.ts";

export interface PodOptions {
  /** "ptp", as in KIND: a veth pair for each pod. "bridge": all pods of a node on one bridge. */
  readonly cni?: "ptp" | "bridge" | undefined;
  readonly family?: "ipv4" | "ipv6" | "dual" | undefined;
  /** From 10.244.0.0/24 and fd00:10:244::/64; default: the next free one. */
  readonly address?: string | undefined;
  readonly address6?: string | undefined;
  /** Whether bridged packets pass through iptables. Only for "bridge"; default: the kernel's. */
  readonly bridgeNfCall?: 0 | 1 | undefined;
}

const POD_GATEWAY = "10.244.0.1";
export const POD_GATEWAY6 = "fd00:10:244::1";
const BRIDGE = "cni0";
const FIRST_HOST = 2;
const HOSTS = 250;

/** Destinations that are other pods, to which the pod's address is kept, as in KIND's network agent. */
const POD_NETS = { iptables: "10.244.0.0/16", ip6tables: "fd00:10:244::/56" };
/**
 * The node's part, by one shell, because starting a program takes more processor time than what it does here. The rules
 * that masquerade are created for the first pod of a node. The bridge may exist from an earlier one; if it cannot be
 * created, adding its port fails with an error.
 */
const IN_NODE = `
set -eu
bridge=$1 programs=$2 settings=$3
for setting in $settings; do echo "\${setting#*=}" > "/proc/sys/net/\${setting%%=*}"; done
if test -n "$bridge"; then ip link add "$bridge" type bridge 2>/dev/null || true; fi
ip -batch -
for program in $programs; do
  iptables=\${program%%=*} pods=\${program#*=}
  if "$iptables" -w -t nat -N KIND-MASQ-AGENT 2>/dev/null; then
    "$iptables" -w -t nat -A KIND-MASQ-AGENT -d "$pods" -j RETURN
    "$iptables" -w -t nat -A KIND-MASQ-AGENT -j MASQUERADE
    "$iptables" -w -t nat -A POSTROUTING -m addrtype ! --dst-type LOCAL -j KIND-MASQ-AGENT
  else
    "$iptables" -w -t nat -n -L KIND-MASQ-AGENT >/dev/null
  fi
done
`;

let started = 0;

/**
 * Its nameservers are those of the node's resolv.conf at this moment; later changes do not reach it, as with a real
 * pod.
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
    const words = [cni === "bridge" ? BRIDGE : "", programsOf(node, family), settingsOf(options)];
    const nodeLines = cni === "ptp" ? ptpLines(link) : portLines(link);
    await checkIn(node.netnsPath, "sh", ["-c", IN_NODE, "pod", ...words], nodeLines);
    // Its last line shows whether the link is up.
    const shown = await checkIn(netns.netnsPath, "ip", ["-oneline", "-batch", "-"], podLines(cni, addresses));
    if (!IS_UP.test(shown)) await waitFor(`the link of ${netns.name}`, async () => await isUp(netns));
    return new Pod(netns, { device: cni === "ptp" ? link.device : BRIDGE, addresses, resolvConf: text });
  } catch (error) {
    await netns[Symbol.asyncDispose]();
    throw error;
  }
}

/** The kernel drops packets on a new link until it has brought the link up. */
const IS_UP = / state UP /;

async function isUp({ netnsPath }: Netns): Promise<true | undefined> {
  return IS_UP.test(await checkIn(netnsPath, "ip", ["-o", "link", "show", "eth0"])) ? true : undefined;
}

interface PodFacts {
  readonly device: string;
  readonly addresses: readonly string[];
  readonly resolvConf: string;
}

export class Pod implements AsyncDisposable, NetworkContext {
  /** The node's device that receives the pod's packets. */
  readonly device: string;
  /** IPv4 first, if it has any. */
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

  /** The node's nameservers at the pod's start; loopback addresses are kept. */
  get nameservers(): string[] {
    return [...this.resolvConf.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  }

  get netnsPath(): string {
    return this.#netns.netnsPath;
  }

  /** With the machine's files: queries must name their server. */
  async enter(command: string, args: readonly string[] = [], options: CommandOptions = {}): Promise<CommandResult> {
    return await this.#netns.enter(command, args, options);
  }

  /** This removes its link and all routes through it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#netns[Symbol.asyncDispose]();
  }
}

type Link = { readonly device: string; readonly pod: string; readonly addresses: readonly string[] };

/** The node's kernel settings, each as its path below /proc/sys/net and its value. */
function settingsOf({ family = "ipv4", bridgeNfCall }: PodOptions): string {
  const ipv6 = ["ipv6/conf/all/disable_ipv6=0", "ipv6/conf/default/disable_ipv6=0", "ipv6/conf/all/forwarding=1"];
  const bridged = ["iptables", "ip6tables"].map((program) => `bridge/bridge-nf-call-${program}=${bridgeNfCall}`);
  return [
    "ipv4/ip_forward=1",
    "ipv4/conf/all/rp_filter=1",
    "ipv4/conf/default/rp_filter=1",
    ...NO_ICMP_RATE_LIMIT,
    ...(family === "ipv4" ? [] : ipv6),
    ...(bridgeNfCall === undefined ? [] : bridged),
  ].join(" ");
}

/** The programs that write rules for this family, each with the addresses of other pods. */
function programsOf({ iptables }: PodHost, family: PodOptions["family"]): string {
  const programs = (["iptables", "ip6tables"] as const).slice(
    family === "ipv6" ? 1 : 0,
    family === "ipv4" ? 1 : undefined,
  );
  return programs.map((program) => `${program}-${iptables}=${POD_NETS[program]}`).join(" ");
}

/** The node's end has only the gateway's address, and a route to this one pod. */
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
    "link show dev eth0",
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

/** Skips duplicate address detection, which takes a second. */
function nodadOf(address: string): string {
  return address.includes(":") ? " nodad" : "";
}
