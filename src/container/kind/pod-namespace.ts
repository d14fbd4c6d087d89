/**
 * A pod namespace: a namespace that stands to a node as a pod does, made to ask from. A node that reaches dns11 proves
 * nothing of its pods, because their packets come in from outside and meet other rules.
 *
 * Nobody else sees it: it has no name and no process, only our descriptor holds it. So it goes with us however we end,
 * and its end of the pair takes the node's end along.
 */
import { randomInt } from "node:crypto";
import { openSync, writeFileSync } from "node:fs";

import { closeQuietly } from "../../kernel/libc.ts";
import { forgetConversationsOf } from "../../kernel/conntrack.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import { Fault, codeOf } from "../../lib/fault.ts";
import { standStill } from "../../lib/stand-still.ts";
import type { Bracket } from "../namespace/bracket.ts";

interface PodAddresses {
  readonly ipv4: string;
  /** undefined where the node has IPv6 switched off. */
  readonly ipv6: string | undefined;
}

export interface PodNamespace {
  /** The namespace, to be entered. */
  readonly fd: number;
  readonly addresses: PodAddresses;
  /**
   * Leaves the node as it was. The node's descriptor must still be open, and all sockets made inside closed. Listeners
   * should have had their turn to see that: a connection that the node has to end later ends by its way out.
   */
  close(): void;
}

/** The two ends of a link: what they are called and which addresses they have. */
interface Pair {
  readonly link: string;
  readonly node: { readonly ipv4: string; readonly ipv6: string };
  readonly pod: { readonly ipv4: string; readonly ipv6: string };
}

/** Takes the link away again, and what is remembered of the addresses that were used. */
type Part = (link: string, used: readonly string[]) => void;

/** The same names mean the same addresses, so that the kernel's refusal of a name keeps two pods apart. */
const PAIRS = 128;
const IPV4_PREFIX = "169.254.54";
const IPV6_PREFIX = "fd64:6e73:3131:706f:";
const POD_LINK = "eth0";
const LOOPBACK = "lo";
/** How the kernel says that there is no IPv6 on a link, or none at all. */
const NO_IPV6 = new Set(["EACCES", "EAFNOSUPPORT", "EOPNOTSUPP"]);
/** The kernel lets packets through a new link within microseconds; older ones take their time when there is much to do. */
const READY_MS_MAX = 50;
const LOOK_EVERY_MS = 0.2;

/** Makes a pod of the node whose namespace is behind `node`. If that fails nothing of it is left. */
export function openPodNamespace(bracket: Bracket, memory: NetlinkMemory, node: number): PodNamespace {
  const outside = bracket.within(node, () => new RouteSocket(memory));
  try {
    const { fd, inside } = bracket.withinScratch(() => hold(memory));
    try {
      return join(outside, inside, fd, (link, used) => bracket.within(node, () => separate(memory, link, used)));
    } finally {
      inside.close();
    }
  } finally {
    outside.close();
  }
}

/** Holds the namespace that the thread is in: a way back into it, and a hand in it from wherever the thread is. */
function hold(memory: NetlinkMemory): { fd: number; inside: RouteSocket } {
  const inside = new RouteSocket(memory);
  try {
    shortenFarewells();
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
function shortenFarewells(): void {
  try {
    writeFileSync("/proc/sys/net/ipv4/tcp_orphan_retries", "1");
  } catch {
    // In a container of our own /proc/sys may be read-only.
  }
}

function join(outside: RouteSocket, inside: RouteSocket, fd: number, part: Part): PodNamespace {
  let link: string | undefined;
  let used: readonly string[] = [];
  let isClosed = false;
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    try {
      if (link !== undefined) part(link, used);
    } finally {
      closeQuietly(fd);
    }
  };
  try {
    const pair = createPair(outside, fd);
    ({ link } = pair);
    const { ipv4, ipv6 } = pair.pod;
    const hasIpv6 = connect(outside, inside, pair);
    used = hasIpv6 ? [ipv4, ipv6] : [ipv4];
    return { fd, addresses: { ipv4, ipv6: hasIpv6 ? ipv6 : undefined }, close };
  } catch (error) {
    close();
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
  return { link: `dns11-pod-${number}`, node: end(2 * number), pod: end(2 * number + 1) };
}

/** Brings both ends up, with addresses and the pod's way out. Returns whether there is IPv6, too. */
function connect(outside: RouteSocket, inside: RouteSocket, pair: Pair): boolean {
  raise(inside, LOOPBACK);
  const node = raise(outside, pair.link);
  const pod = raise(inside, POD_LINK);
  outside.addAddress({ index: node, address: pair.node.ipv4, prefixLength: 31 });
  inside.addAddress({ index: pod, address: pair.pod.ipv4, prefixLength: 31 });
  leadOut(inside, pair.node.ipv4, pod);
  const hasIpv6 = isPossible(() => {
    outside.addAddress({ index: node, address: pair.node.ipv6, prefixLength: 127 });
    inside.addAddress({ index: pod, address: pair.pod.ipv6, prefixLength: 127 });
    leadOut(inside, pair.node.ipv6, pod);
  });
  awaitReady(
    () =>
      isRunning(outside, pair.link) &&
      isRunning(inside, POD_LINK) &&
      (!hasIpv6 || (outside.isLocal(pair.node.ipv6) && inside.isLocal(pair.pod.ipv6))),
  );
  return hasIpv6;
}

function raise(routes: RouteSocket, name: string): number {
  const link = routes.linkNamed(name);
  if (link === undefined)
    throw new Fault("LINK_IS_GONE", `Somebody has removed the interface ${name} of a pod to ask from`);
  routes.setUp(link.index);
  return link.index;
}

function leadOut(inside: RouteSocket, gateway: string, index: number): void {
  inside.addRoute({ destination: undefined, prefixLength: 0, gateway, index });
}

function isPossible(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (NO_IPV6.has(codeOf(error) ?? "")) return false;
    throw error;
  }
}

function isRunning(routes: RouteSocket, name: string): boolean {
  return routes.linkNamed(name)?.isRunning === true;
}

/** What the kernel does later it does while we sleep: until then packets would be lost, and asked again after a second. */
function awaitReady(isReady: () => boolean): void {
  const deadlineMs = performance.now() + READY_MS_MAX;
  while (!isReady()) {
    if (performance.now() > deadlineMs) throw new Fault("POD_NOT_READY", "A pod to ask from did not come up in time");
    standStill(LOOK_EVERY_MS);
  }
}

/** Removes the link, with it both ends and their addresses, and then what connection tracking knows of the pod. */
function separate(memory: NetlinkMemory, link: string, used: readonly string[]): void {
  const routes = new RouteSocket(memory);
  try {
    const found = routes.linkNamed(link);
    if (found !== undefined) routes.removeLink(found.index);
  } finally {
    routes.close();
  }
  for (const address of used) forgetConversationsOf(memory, address);
}
