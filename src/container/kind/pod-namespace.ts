/**
 * A pod namespace: a namespace that stands to a node as a pod does, made to ask from. A node that reaches dns11 proves
 * nothing of its pods, because their packets come in from outside and meet other rules.
 *
 * Nobody else sees it: it has no name and no process, only our descriptor holds it. So it goes with us however we end,
 * and its end of the pair takes the node's end along.
 */
import { randomInt } from "node:crypto";
import { openSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { closeQuietly } from "../../kernel/libc.ts";
import { type Conversation, deleteEntriesFrom } from "../../kernel/conntrack.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";

interface PodAddresses {
  readonly ipv4: string;
  /** undefined where the node has IPv6 switched off. */
  readonly ipv6: string | undefined;
}

export interface PodNamespace {
  /** The namespace, to be entered. */
  readonly fd: number;
  readonly addresses: PodAddresses;
  /** A port that nobody has in there, to ask from: whoever asks from it can have the kernel forget that. */
  readonly sourcePort: number;
  /** The node's end of its link. */
  readonly link: { readonly name: string; readonly index: number };
  /**
   * Leaves the node as it was, at once. The node's descriptor must still be open, and all sockets made inside closed.
   * Listeners should have had their turn to see that: a connection that the node has to end later ends by its way out. The
   * link's end and the search through connection tracking keep the thread for tens of milliseconds.
   */
  close(): void;
  /**
   * Lets it go without waiting for that: the kernel takes the link away in a worker of its own, soon after. Whoever has
   * asked has what it remembers of that forgotten (`conversationsOf`).
   */
  abandon(): void;
}

/** The two ends of a link: what they are called and which addresses they have. */
interface Pair {
  readonly link: string;
  readonly node: { readonly ipv4: string; readonly ipv6: string };
  readonly pod: { readonly ipv4: string; readonly ipv6: string };
}

/** Takes the link away again, and what is remembered of the addresses that were used. */
type RemovePod = (link: PodNamespace["link"], used: readonly string[]) => void;

/** The same names mean the same addresses, so that the kernel's refusal of a name keeps two pods apart. */
const PAIRS = 128;
const IPV4_PREFIX = "169.254.54";
const IPV6_PREFIX = "fd64:6e73:3131:706f:";
const LINK_PREFIX = "dns11-pod-";
const POD_LINK = "eth0";
const LOOPBACK = "lo";
const DNS_PORT = 53;
/** As the kernel itself gives them to who does not care. */
const SOURCE_PORTS = { first: 32_768, end: 61_000 };
/** How the kernel says that there is no IPv6 on a link, or none at all. */
const NO_IPV6 = new Set(["EACCES", "EAFNOSUPPORT", "EOPNOTSUPP"]);
/** The kernel lets packets through a new link within microseconds; older ones take their time when there is much to do. */
const READY_MS_MAX = 1_000;
const LOOK_EVERY_MS = 1;

/** Whether an interface leads to such a pod: of this process or of another one, the doctor's for instance. */
export function isPodLink({ name }: { readonly name: string }): boolean {
  return name.startsWith(LINK_PREFIX);
}

/** Makes a pod of the node whose namespace is behind `node`. If that fails the kernel soon takes away what there is of it. */
export async function openPodNamespace(
  runner: NamespaceRunner,
  memory: NetlinkMemory,
  node: number,
): Promise<PodNamespace> {
  const outside = runner.within(node, () => new RouteSocket(memory));
  try {
    const { fd, inside } = runner.withinScratch(() => holdNamespace(memory));
    try {
      return await connectPod(outside, inside, fd, (link, used) =>
        runner.within(node, () => removePod(memory, link, used)),
      );
    } finally {
      inside.close();
    }
  } finally {
    outside.close();
  }
}

/** What a node's connection tracking knows of somebody who asked these servers from the pod, and from its port. */
export function conversationsOf({ addresses, sourcePort }: PodNamespace, servers: readonly string[]): Conversation[] {
  return servers.flatMap((destination) => {
    const source = destination.includes(":") ? addresses.ipv6 : addresses.ipv4;
    if (source === undefined) return [];
    return (["udp", "tcp"] as const).map((protocol) => ({
      protocol,
      source,
      sourcePort,
      destination,
      destinationPort: DNS_PORT,
    }));
  });
}

/** Takes away the link of a pod that was left, where the kernel has not come to that; to be called in the node. */
export function removePodLink(memory: NetlinkMemory, { name, index }: PodNamespace["link"]): void {
  const routes = new RouteSocket(memory);
  try {
    // An interface that comes from another namespace keeps its number where that is free.
    if (routes.linkNamed(name)?.index === index) routes.removeLink(index);
  } catch (error) {
    if (codeOf(error) !== "ENODEV") throw error;
  } finally {
    routes.close();
  }
}

/** Holds the namespace that the thread is in: a way back into it, and a hand in it from wherever the thread is. */
function holdNamespace(memory: NetlinkMemory): { fd: number; inside: RouteSocket } {
  const inside = new RouteSocket(memory);
  try {
    shortenOrphanRetries();
    return { fd: openSync("/proc/thread-self/ns/net", "r"), inside };
  } catch (error) {
    inside.close();
    throw error;
  }
}

/**
 * A connection whose end the node has not yet acknowledged when the link goes says farewell again and again, for minutes,
 * and holds the namespace meanwhile. Where we may not say so it takes those minutes.
 */
function shortenOrphanRetries(): void {
  try {
    writeFileSync("/proc/sys/net/ipv4/tcp_orphan_retries", "1");
  } catch {
    // In a container of our own /proc/sys may be read-only.
  }
}

async function connectPod(
  outside: RouteSocket,
  inside: RouteSocket,
  fd: number,
  part: RemovePod,
): Promise<PodNamespace> {
  let link: PodNamespace["link"] | undefined;
  let used: readonly string[] = [];
  let isClosed = false;
  const end = (parted: () => void): void => {
    if (isClosed) return;
    isClosed = true;
    try {
      parted();
    } finally {
      closeQuietly(fd);
    }
  };
  const close = (): void => end(() => link !== undefined && part(link, used));
  const leave = (): void => end(() => {});
  try {
    const pair = createPair(outside, fd);
    link = { name: pair.link, index: indexOf(outside, pair.link) };
    const { ipv4, ipv6 } = pair.pod;
    const hasIpv6 = await configurePair(outside, inside, pair);
    used = hasIpv6 ? [ipv4, ipv6] : [ipv4];
    const sourcePort = randomInt(SOURCE_PORTS.first, SOURCE_PORTS.end);
    return { fd, addresses: { ipv4, ipv6: hasIpv6 ? ipv6 : undefined }, sourcePort, link, close, abandon: leave };
  } catch (error) {
    leave();
    throw error;
  }
}

/** Begins anywhere: a pair that a killed process had may still be in connection tracking's memory. */
function createPair(outside: RouteSocket, namespace: number): Pair {
  const taken = new Set(outside.addresses().map(({ address }) => address));
  const first = randomInt(PAIRS);
  for (let step = 0; step < PAIRS; step++) {
    const pair = pairAt((first + step) % PAIRS);
    if ([pair.node, pair.pod].some(({ ipv4, ipv6 }) => taken.has(ipv4) || taken.has(ipv6))) continue;
    try {
      outside.createVeth({ name: pair.link, peer: { name: POD_LINK, namespace } });
      return pair;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
  throw new Fault("NO_FREE_ADDRESS", `All addresses for a pod to ask from (${IPV4_PREFIX}.0/24) are taken in the node`);
}

function pairAt(number: number): Pair {
  const end = (place: number): Pair["node"] => ({
    ipv4: `${IPV4_PREFIX}.${place}`,
    ipv6: `${IPV6_PREFIX}:${place.toString(16)}`,
  });
  return { link: `${LINK_PREFIX}${number}`, node: end(2 * number), pod: end(2 * number + 1) };
}

/** Brings both ends up, with addresses and the pod's way out. Returns whether there is IPv6, too. */
async function configurePair(outside: RouteSocket, inside: RouteSocket, pair: Pair): Promise<boolean> {
  bringUp(inside, LOOPBACK);
  const node = bringUp(outside, pair.link);
  const pod = bringUp(inside, POD_LINK);
  outside.addAddress({ index: node, address: pair.node.ipv4, prefixLength: 31 });
  inside.addAddress({ index: pod, address: pair.pod.ipv4, prefixLength: 31 });
  addDefaultRoute(inside, pair.node.ipv4, pod);
  const hasIpv6 = trySettingIpv6(() => {
    outside.addAddress({ index: node, address: pair.node.ipv6, prefixLength: 127 });
    inside.addAddress({ index: pod, address: pair.pod.ipv6, prefixLength: 127 });
    addDefaultRoute(inside, pair.node.ipv6, pod);
  });
  await waitUntilReady(
    () =>
      isLinkRunning(outside, pair.link) &&
      isLinkRunning(inside, POD_LINK) &&
      (!hasIpv6 || (outside.isLocal(pair.node.ipv6) && inside.isLocal(pair.pod.ipv6))),
  );
  return hasIpv6;
}

function bringUp(routes: RouteSocket, name: string): number {
  const index = indexOf(routes, name);
  routes.setUp(index);
  return index;
}

function indexOf(routes: RouteSocket, name: string): number {
  const link = routes.linkNamed(name);
  if (link !== undefined) return link.index;
  throw new Fault("LINK_IS_GONE", `Somebody has removed the interface ${name} of a pod to ask from`);
}

function addDefaultRoute(inside: RouteSocket, gateway: string, index: number): void {
  inside.addRoute({ destination: undefined, prefixLength: 0, gateway, index });
}

function trySettingIpv6(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (NO_IPV6.has(codeOf(error) ?? "")) return false;
    throw error;
  }
}

function isLinkRunning(routes: RouteSocket, name: string): boolean {
  return routes.linkNamed(name)?.isRunning === true;
}

/** What the kernel does later it does while we wait: until then packets would be lost, and asked again after a second. */
async function waitUntilReady(isReady: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + READY_MS_MAX;
  while (!isReady()) {
    if (performance.now() > deadlineMs) throw new Fault("POD_NOT_READY", "A pod to ask from did not come up in time");
    await sleep(LOOK_EVERY_MS);
  }
}

/** Removes the link, with it both ends and their addresses, and then what connection tracking knows of the pod. */
function removePod(memory: NetlinkMemory, link: PodNamespace["link"], used: readonly string[]): void {
  removePodLink(memory, link);
  for (const address of used) deleteEntriesFrom(memory, address);
}
