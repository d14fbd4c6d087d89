/**
 * Which addresses of other containers a container or the host gets below a zone, and in which order.
 */
import type { EndpointFact, NetworkFact } from "../../container/facts/fact.ts";
import type { Gateways } from "../../container/names/source/gateways.ts";
import type { Visibility } from "../../container/names/source/visibility.ts";
import {
  type Addresses,
  EVERYWHERE,
  type MemberEndpoint,
  type ZoneMember,
} from "../../container/names/services/member.ts";
import { NOTHING, ReachableAddresses } from "../../container/names/services/reachable-addresses.ts";

interface ReachableParts {
  /** The container's own networks, in search order. */
  readonly networks: readonly string[];
  readonly visibility: Visibility | undefined;
  readonly gateways: Gateways;
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

const NONE = new Uint8Array(0);

/** Finds those on a container's own networks, in Docker's order, then those with a route that `visible` adds. */
export function reachableFromContainer({
  networks,
  visibility,
  gateways,
  networkOf,
}: ReachableParts): ReachableAddresses {
  const ranks = new Map(networks.map((id, rank) => [id, rank]));
  const addressesOf = (endpoint: MemberEndpoint): Addresses => {
    if (ranks.has(endpoint.networkId)) return endpoint;
    if (endpoint.networkId === EVERYWHERE)
      return { v4: gateways.ipv4 === undefined ? [] : endpoint.v4, v6: gateways.ipv6 === undefined ? [] : endpoint.v6 };
    const network = visibility === undefined ? undefined : networkOf(endpoint.networkId);
    if (visibility === undefined || network === undefined || !visibility.sees(network)) return NOTHING;
    const { v4, v6 } = visibility.reachable({ v4: endpoint.v4[0] ?? NONE, v6: endpoint.v6[0] ?? NONE });
    return { v4: v4.length === 0 ? [] : [v4], v6: v6.length === 0 ? [] : [v6] };
  };
  return new ReachableAddresses(addressesOf, (networkId) => ranks.get(networkId) ?? ranks.size);
}

/**
 * The addresses of containers that the host gets below a zone: those that it can reach, whatever `visible`
 * says, as for all names on the host.
 *
 * `reachable`: the endpoints of a container, with those of its addresses that the host can reach.
 */
export function reachableFromHost(reachable: (id: string) => readonly EndpointFact[]): ReachableAddresses {
  const addressesOf = ({ networkId, v4, v6 }: MemberEndpoint, { id }: ZoneMember): Addresses => {
    if (networkId === EVERYWHERE) return { v4, v6 };
    const found = reachable(id).find((each) => each.networkId === networkId);
    if (found === undefined) return NOTHING;
    return { v4: found.ipv4 === undefined ? [] : v4, v6: found.ipv6 === undefined ? [] : v6 };
  };
  // All networks are equal to the host, so a container's addresses stay in the order in which the engine lists them.
  return new ReachableAddresses(addressesOf, () => 0);
}
