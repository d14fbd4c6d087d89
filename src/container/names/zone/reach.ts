/**
 * Reach: which addresses of other containers one container, or the host, is told below a zone, and in which order. A
 * container without any does not exist for it.
 */
import type { NetworkFact } from "../../facts/fact.ts";
import type { Gateways } from "../source/gateways.ts";
import type { Outlook } from "../source/outlook.ts";
import { type AddressHolder, type Addresses, EVERYWHERE, type MemberEndpoint, type ZoneMember } from "./member.ts";

/** Its addresses on one network, as far as they are told. */
type Told = (endpoint: MemberEndpoint, member: ZoneMember) => Addresses;

export class Reach {
  readonly #told: Told;
  readonly #rank: (networkId: string) => number;

  /** Networks with a lower rank come first. */
  constructor(told: Told, rank: (networkId: string) => number) {
    this.#told = (endpoint, member) => {
      const isElsewhere = member.remote?.unless.some((each) => isAny(told(each, member))) === true;
      return isElsewhere ? NOTHING : told(endpoint, member);
    };
    this.#rank = rank;
  }

  sees(member: ZoneMember): boolean {
    return member.endpoints.some((each) => isAny(this.#told(each, member)));
  }

  /** Whether this very address is told. */
  tells({ member, endpoint, address }: AddressHolder): boolean {
    const { v4, v6 } = this.#told(endpoint, member);
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
    if (only !== undefined && endpoints.length === 1) return this.#told(only, member);
    const ordered = endpoints.toSorted((a, b) => this.#rank(a.networkId) - this.#rank(b.networkId));
    const told = ordered.map((each) => this.#told(each, member));
    return { v4: told.flatMap(({ v4 }) => v4), v6: told.flatMap(({ v6 }) => v6) };
  }
}

function isAny({ v4, v6 }: Addresses): boolean {
  return v4.length + v6.length > 0;
}

interface ReachParts {
  /** The container's own networks, in search order. */
  readonly networks: readonly string[];
  readonly outlook: Outlook | undefined;
  readonly gateways: Gateways;
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

const NONE = new Uint8Array(0);
export const NOTHING: Addresses = { v4: [], v6: [] };

/** Of a container: those on its own networks, in Docker's order, then those with a route that `visible` adds. */
export function containerReach({ networks, outlook, gateways, networkOf }: ReachParts): Reach {
  const ranks = new Map(networks.map((id, rank) => [id, rank]));
  const told = (endpoint: MemberEndpoint): Addresses => {
    if (ranks.has(endpoint.networkId)) return endpoint;
    if (endpoint.networkId === EVERYWHERE)
      return { v4: gateways.ipv4 === undefined ? [] : endpoint.v4, v6: gateways.ipv6 === undefined ? [] : endpoint.v6 };
    const network = outlook === undefined ? undefined : networkOf(endpoint.networkId);
    if (outlook === undefined || network === undefined || !outlook.sees(network)) return NOTHING;
    const { v4, v6 } = outlook.reachable({ v4: endpoint.v4[0] ?? NONE, v6: endpoint.v6[0] ?? NONE });
    return { v4: v4.length === 0 ? [] : [v4], v6: v6.length === 0 ? [] : [v6] };
  };
  return new Reach(told, (networkId) => ranks.get(networkId) ?? ranks.size);
}
