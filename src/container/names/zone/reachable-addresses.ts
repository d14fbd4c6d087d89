/**
 * ReachableAddresses: the addresses of other containers below a zone that one container, or the host, can use, in order. A
 * container without any does not exist for it.
 */
import type { NetworkFact } from "../../facts/fact.ts";
import type { Gateways } from "../source/gateways.ts";
import type { Visibility } from "../source/visibility.ts";
import { type AddressHolder, type Addresses, EVERYWHERE, type MemberEndpoint, type ZoneMember } from "./member.ts";

/** The addresses of a member on one network that can be used. */
type AddressesOf = (endpoint: MemberEndpoint, member: ZoneMember) => Addresses;

export class ReachableAddresses {
  readonly #addressesOf: AddressesOf;
  readonly #rank: (networkId: string) => number;

  /** Networks with a lower rank come first. */
  constructor(addressesOf: AddressesOf, rank: (networkId: string) => number) {
    this.#addressesOf = (endpoint, member) => {
      const isElsewhere = member.remote?.unless.some((each) => isAny(addressesOf(each, member))) === true;
      return isElsewhere ? NOTHING : addressesOf(endpoint, member);
    };
    this.#rank = rank;
  }

  sees(member: ZoneMember): boolean {
    return member.endpoints.some((each) => isAny(this.#addressesOf(each, member)));
  }

  /** Whether it is one of them. */
  has({ member, endpoint, address }: AddressHolder): boolean {
    const { v4, v6 } = this.#addressesOf(endpoint, member);
    return (address.length === 4 ? v4 : v6).includes(address);
  }

  /** One address of each family: on the first network. */
  first(member: ZoneMember): Addresses {
    const { v4, v6 } = this.all(member);
    return v4.length < 2 && v6.length < 2 ? { v4, v6 } : { v4: v4.slice(0, 1), v6: v6.slice(0, 1) };
  }

  all(member: ZoneMember): Addresses {
    const { endpoints } = member;
    const [only] = endpoints;
    // Nearly all have one network, and an answer can have hundreds of containers.
    if (only !== undefined && endpoints.length === 1) return this.#addressesOf(only, member);
    const ordered = endpoints.toSorted((a, b) => this.#rank(a.networkId) - this.#rank(b.networkId));
    const found = ordered.map((each) => this.#addressesOf(each, member));
    return { v4: found.flatMap(({ v4 }) => v4), v6: found.flatMap(({ v6 }) => v6) };
  }
}

function isAny({ v4, v6 }: Addresses): boolean {
  return v4.length + v6.length > 0;
}

interface ReachableParts {
  /** The container's own networks, in search order. */
  readonly networks: readonly string[];
  readonly visibility: Visibility | undefined;
  readonly gateways: Gateways;
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

const NONE = new Uint8Array(0);
export const NOTHING: Addresses = { v4: [], v6: [] };

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
