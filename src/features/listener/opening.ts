/**
 * What the listener has on the host: its link, its sockets there, and its rules; all of it or nothing. Only with its rules is it reachable,
 * because they are what tells who asks.
 *
 * The link has the listener's addresses: a bridge without ports. A dummy device would do, but not every kernel has one, and where
 * Docker runs there are bridges. A tun device would go with its process: then queries would leave by the default route, where
 * anybody might answer. The bridge stays, and while nobody listens the kernel refuses each query at once.
 */
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import { HostSockets, type HostSocketsParts } from "../../container/host-address/host-sockets.ts";
import { isIpv6Enabled } from "../../container/namespace/ipv6.ts";
import {
  type NamespaceSockets,
  type WaitingSocket,
  bindWaiting,
  closeSockets,
} from "../../container/namespace/sockets.ts";
import { closeQuietly, forceReceiveBuffer } from "../../kernel/libc.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import type { CleanedMachine } from "../contract.ts";
import { LISTENER_LIMITS } from "./limits.ts";
import { type Askers, ListenerTable } from "./listener-table.ts";

const LISTENER_LINK = "dns11";

const ADDRESSES = [
  { address: LISTENER_ADDRESSES.ipv4, prefixLength: 32 },
  { address: LISTENER_ADDRESSES.ipv6, prefixLength: 128 },
] as const;
/** IPv6 is off: for this link, for the namespace, or in the kernel. */
const NO_IPV6 = new Set(["EACCES", "EPERM", "EAFNOSUPPORT", "EOPNOTSUPP"]);
/** What stands for the host's namespace with the keeper. */
const HELD_ID = "listener";

export interface OpenListener {
  readonly sockets: HostSockets<ListenerTable>;
  readonly waiting: readonly WaitingSocket[];
  pairs: readonly NamespaceSockets[];
}

export async function openListener(parts: HostSocketsParts, askers: Askers): Promise<OpenListener> {
  const { backend } = parts.ruleBackend;
  if (backend !== "nft-owner") throw unfitBackend(backend);
  const sockets = new HostSockets(parts, {
    id: HELD_ID,
    openTable: (netns, inherited) => new ListenerTable(netns, inherited),
  });
  let pairs: NamespaceSockets[] = [];
  const waiting: WaitingSocket[] = [];
  try {
    const addresses = sockets.netns.within(() => ensureListenerLink(parts.memory).filter((each) => isUsable(each)));
    pairs = sockets.bind(addresses);
    sockets.closeInherited();
    for (const { udp } of pairs) forceReceiveBuffer(udp, LISTENER_LIMITS.receiveBytes);
    sockets.netns.within(() => {
      for (const { listening } of pairs) waiting.push(bindWaiting(listening.address));
    });
    await sockets.table.install(
      pairs.map((each) => each.listening),
      waiting.map((each) => each.listening),
      askers,
    );
    return { sockets, pairs, waiting };
  } catch (error) {
    sockets.close();
    closeSockets(pairs);
    for (const { udp } of waiting) closeQuietly(udp);
    throw codeOf(error) === "EPERM" ? anotherInstance(error) : error;
  }
}

/** Nobody else removes the link when the process ends. */
export function cleanUp({ runner, memory, host }: CleanedMachine): string[] {
  const isRemoved = runner.within(host().network, () => removeListenerLink(memory));
  return isRemoved ? [`removed the link "${LISTENER_LINK}" of the listener`] : [];
}

function isUsable(address: string): boolean {
  return !address.includes(":") || isIpv6Enabled();
}

function unfitBackend(backend: string): Fault {
  return new Fault(
    "LISTENER_NEEDS_NFT",
    `The listener needs rules that end with their process, and the rule backend is ${backend}`,
    {
      remedy: "Use Linux 5.12 or later with nf_tables, or remove the setting listener.",
    },
  );
}

/** Its rules are another process's. */
function anotherInstance(error: unknown): Fault {
  return new Fault("LISTENER_TAKEN", `Another dns11 has the listener at the link "${LISTENER_LINK}" of this host`, {
    cause: error,
    remedy: "One instance of a host can have it: remove the setting listener of the other one.",
  });
}

/** Makes what is missing, and returns the addresses that it has. Call inside the host's namespace. */
function ensureListenerLink(memory: NetlinkMemory): string[] {
  const routes = new RouteSocket(memory);
  try {
    if (routes.linkNamed(LISTENER_LINK) === undefined) routes.createBridge(LISTENER_LINK);
    const { index = -1 } = routes.linkNamed(LISTENER_LINK) ?? {};
    routes.setUp(index);
    return ADDRESSES.filter((each) => addAddress(routes, { index, ...each })).map(({ address }) => address);
  } catch (error) {
    throw new Fault("LISTENER_LINK", `Cannot make the link "${LISTENER_LINK}" for the listener`, {
      cause: error,
      remedy: "Give dns11 CAP_NET_ADMIN on the host and load the module bridge; or remove the setting listener.",
    });
  } finally {
    routes.close();
  }
}

/** Returns whether there was one. Call inside the host's namespace. */
export function removeListenerLink(memory: NetlinkMemory): boolean {
  const routes = new RouteSocket(memory);
  try {
    const link = routes.linkNamed(LISTENER_LINK);
    if (link === undefined || !hasAddress(routes, link.index)) return false;
    routes.removeLink(link.index);
    return true;
  } finally {
    routes.close();
  }
}

/** A link of that name without it is not ours. */
function hasAddress(routes: RouteSocket, index: number): boolean {
  return routes.addresses().some((each) => each.index === index && each.address === LISTENER_ADDRESSES.ipv4);
}

/** Returns whether the link has it. */
function addAddress(routes: RouteSocket, added: Parameters<RouteSocket["addAddress"]>[0]): boolean {
  try {
    routes.addAddress(added);
  } catch (error) {
    const code = codeOf(error) ?? "";
    if (added.address.includes(":") && NO_IPV6.has(code)) return false;
    if (code !== "EEXIST") throw error;
  }
  return true;
}
