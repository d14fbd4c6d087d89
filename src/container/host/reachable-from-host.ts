/**
 * ReachableFromHost: the addresses of containers that the host gets below a zone: those that it can reach, whatever `visible`
 * says, as for all names on the host.
 */
import { type Addresses, EVERYWHERE, type MemberEndpoint, type ZoneMember } from "../names/zone/member.ts";
import { NOTHING, ReachableAddresses } from "../names/zone/reachable-addresses.ts";
import type { EndpointFact } from "../facts/fact.ts";

/** `reachable`: the endpoints of a container, with those of its addresses that the host can reach. */
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
