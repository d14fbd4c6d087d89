/**
 * PodNamespace: a test pod, a network namespace connected to a node as a pod is, to send queries from. A query from the node
 * itself proves nothing about its pods, because pods' packets come in from outside and meet other rules.
 *
 * It has no name and no process; only our descriptor keeps it alive. So it disappears however dns11 ends, and its end of the
 * veth pair takes the node's end along.
 */
import { randomInt } from "node:crypto";
import { openSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { closeQuietly } from "../../kernel/libc.ts";
import { type Conversation, deleteEntriesFrom } from "../../kernel/conntrack.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";

interface PodAddresses {
  readonly ipv4: string;
  /** undefined if IPv6 is disabled in the node. */
  readonly ipv6: string | undefined;
}

export interface PodNamespace {
  /** The descriptor of the namespace. */
  readonly fd: number;
  readonly addresses: PodAddresses;
  /** A free port in the namespace. With queries from it, the caller can find and delete their conntrack entries. */
  readonly sourcePort: number;
  /** The node's end of the veth pair. */
  readonly link: { readonly name: string; readonly index: number };
  /**
   * Removes every trace from the node at once. The node's descriptor must still be open, and all sockets made inside closed;
   * listeners should have had an event-loop turn to see that, or their connections end through the node's default route.
   * Removing the link and searching conntrack block the thread for tens of milliseconds.
   */
  close(): void;
  /**
   * Closes it without waiting: a kernel worker removes the link soon after. The caller deletes the conntrack entries of its
   * queries (`conversationsOf`).
   */
  abandon(): void;
}

/** The two ends of a veth pair with their addresses. */
interface Pair {
  readonly link: string;
  readonly node: { readonly ipv4: string; readonly ipv6: string };
  readonly pod: { readonly ipv4: string; readonly ipv6: string };
}

/** Removes the link and the conntrack entries of the used addresses. */
type RemovePod = (link: PodNamespace["link"], used: readonly string[]) => void;

/** Each link name has fixed addresses, so the kernel's EEXIST for a name also keeps addresses unique. */
const PAIRS = 128;
const IPV4_PREFIX = "169.254.54";
const IPV6_PREFIX = "fd64:6e73:3131:706f:";
const LINK_PREFIX = "dns11-pod-";
const POD_LINK = "eth0";
const LOOPBACK = "lo";
const DNS_PORT = 53;
/** The kernel's default range of ephemeral ports. */
const SOURCE_PORTS = { first: 32_768, end: 61_000 };
/** The kernel's errors for a link, or a whole namespace, without IPv6. */
const NO_IPV6 = new Set(["EACCES", "EAFNOSUPPORT", "EOPNOTSUPP"]);
/** A new link is usually ready within microseconds; older kernels take longer under load. */
const READY_TIMEOUT_MS = 1_000;
const POLL_EVERY_MS = 1;

/** Whether an interface belongs to a test pod, of this process or another one such as the doctor. */
export function isPodLink({ name }: { readonly name: string }): boolean {
  return name.startsWith(LINK_PREFIX);
}

/** Creates a pod of the node with the namespace descriptor `node`. After a failure the kernel soon removes the remains. */
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

/** The conntrack entries of queries to these servers from the pod's source port. */
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

/** Removes the link of an abandoned pod if the kernel has not done so yet. Call inside the node. */
export function removePodLink(memory: NetlinkMemory, { name, index }: PodNamespace["link"]): void {
  const routes = new RouteSocket(memory);
  try {
    // The name and index may belong to another interface by now; one moved here keeps its index if that is free.
    if (routes.linkNamed(name)?.index === index) routes.removeLink(index);
  } catch (error) {
    if (codeOf(error) !== "ENODEV") throw error;
  } finally {
    routes.close();
  }
}

/** Keeps the current namespace alive: a descriptor to enter it, and a route socket that works from any namespace. */
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
 * A TCP connection whose FIN is not acknowledged before the link goes retransmits it for minutes and keeps the namespace alive.
 * This shortens that where it is permitted.
 */
function shortenOrphanRetries(): void {
  try {
    writeFileSync("/proc/sys/net/ipv4/tcp_orphan_retries", "1");
  } catch {
    // If dns11 runs in a container, /proc/sys may be read-only.
  }
}

async function connectPod(
  outside: RouteSocket,
  inside: RouteSocket,
  fd: number,
  remove: RemovePod,
): Promise<PodNamespace> {
  let link: PodNamespace["link"] | undefined;
  let used: readonly string[] = [];
  let isClosed = false;
  const end = (cleanUp: () => void): void => {
    if (isClosed) return;
    isClosed = true;
    try {
      cleanUp();
    } finally {
      closeQuietly(fd);
    }
  };
  const close = (): void => end(() => link !== undefined && remove(link, used));
  const abandon = (): void => end(() => {});
  try {
    const pair = createPair(outside, fd);
    link = { name: pair.link, index: indexOf(outside, pair.link) };
    const { ipv4, ipv6 } = pair.pod;
    const hasIpv6 = await configurePair(outside, inside, pair);
    used = hasIpv6 ? [ipv4, ipv6] : [ipv4];
    const sourcePort = randomInt(SOURCE_PORTS.first, SOURCE_PORTS.end);
    return { fd, addresses: { ipv4, ipv6: hasIpv6 ? ipv6 : undefined }, sourcePort, link, close, abandon };
  } catch (error) {
    abandon();
    throw error;
  }
}

/** Starts at a random pair: conntrack may still have entries of a pair that a killed process used. */
function createPair(outside: RouteSocket, namespace: number): Pair {
  const inUse = new Set(outside.addresses().map(({ address }) => address));
  const first = randomInt(PAIRS);
  for (let step = 0; step < PAIRS; step++) {
    const pair = pairAt((first + step) % PAIRS);
    if ([pair.node, pair.pod].some(({ ipv4, ipv6 }) => inUse.has(ipv4) || inUse.has(ipv6))) continue;
    try {
      outside.createVeth({ name: pair.link, peer: { name: POD_LINK, namespace } });
      return pair;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
  throw new Fault("NO_FREE_ADDRESS", `All addresses for test pods (${IPV4_PREFIX}.0/24) are taken in the node`);
}

function pairAt(number: number): Pair {
  const end = (place: number): Pair["node"] => ({
    ipv4: `${IPV4_PREFIX}.${place}`,
    ipv6: `${IPV6_PREFIX}:${place.toString(16)}`,
  });
  return { link: `${LINK_PREFIX}${number}`, node: end(2 * number), pod: end(2 * number + 1) };
}

/** Brings both ends up with addresses and the pod's default route. Returns whether IPv6 works, too. */
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
  throw new Fault("LINK_IS_GONE", `Another program removed the interface ${name} of the test pod`);
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

/** Waits until the links work; packets sent before would be lost and retransmitted only after a second. */
async function waitUntilReady(isReady: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  while (!isReady()) {
    if (performance.now() > deadlineMs)
      throw new Fault("POD_NOT_READY", "The test pod's interface did not come up in time");
    await sleep(POLL_EVERY_MS);
  }
}

/** Removes the link, with both ends and their addresses, and then the pod's conntrack entries. */
function removePod(memory: NetlinkMemory, link: PodNamespace["link"], used: readonly string[]): void {
  removePodLink(memory, link);
  for (const address of used) deleteEntriesFrom(memory, address);
}
