/**
 * ReachableAddresses: the addresses of other containers below a zone that one container, or the host, can use, in order. A
 * container without any does not exist for it.
 */
import type { AddressHolder, Addresses, MemberEndpoint, ZoneMember } from "./member.ts";

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

export const NOTHING: Addresses = { v4: [], v6: [] };
