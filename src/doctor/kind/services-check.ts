/**
 * Services check: whether the machine has a route to the Services of a node's cluster. Without one it resolves their names and
 * does not reach them.
 */
import type { AddressPair } from "../../container/kind/node-fact.ts";
import type { ClusterAddresses } from "../../container/kind/cluster-dns.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { Within } from "../../kernel/net-namespace.ts";

/** `within`: enters the machine's namespace. Nothing for a node that does not know the ranges of Services. */
export function servicesFindings(
  { services }: ClusterAddresses,
  node: AddressPair,
  within: Within,
  memory: NetlinkMemory,
): Finding[] {
  return services.flatMap((range) => {
    const [address = ""] = range.split("/");
    const gateway = address.includes(":") ? node.ipv6 : node.ipv4;
    if (gateway === undefined) return [];
    if (within(() => isRouted(address, memory))) return [finding("kind-services", "ok", `${range} has a route`)];
    const command = `sudo ip route add ${range} via ${gateway}`;
    const detail = `no route to ${range}: names of Services lead to addresses that this machine does not reach`;
    return [finding("kind-services", "warning", detail, `If programs on this machine use them: ${command}`)];
  });
}

/** By another way than everything else. */
function isRouted(address: string, memory: NetlinkMemory): boolean {
  const route = new RouteSocket(memory);
  try {
    if (!route.hasRouteTo(address)) return false;
    const gateway = route.gatewayTo(address);
    return gateway === undefined || route.defaultGateways().every((each) => each.gateway !== gateway);
  } finally {
    route.close();
  }
}
