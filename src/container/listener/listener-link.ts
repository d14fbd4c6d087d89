/**
 * ListenerLink: the link of the host that has the listener's addresses: a bridge without ports. A dummy device would do, but not
 * every kernel has one, and where Docker runs there are bridges. A tun device would go with its process: then queries would leave
 * by the default route, where anybody might answer. The bridge stays, and while nobody listens the kernel refuses each query at once.
 */
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";

export const LISTENER_LINK = "dns11";

const ADDRESSES = [
  { address: LISTENER_ADDRESSES.ipv4, prefixLength: 32 },
  { address: LISTENER_ADDRESSES.ipv6, prefixLength: 128 },
] as const;
/** IPv6 is off: for this link, for the namespace, or in the kernel. */
const NO_IPV6 = new Set(["EACCES", "EPERM", "EAFNOSUPPORT", "EOPNOTSUPP"]);

/** Makes what is missing, and returns the addresses that it has. Call inside the host's namespace. */
export function ensureListenerLink(memory: NetlinkMemory): string[] {
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
