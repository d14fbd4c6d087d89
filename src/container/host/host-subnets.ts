/**
 * HostSubnets: which containers the host can reach: those on a bridge network of this engine whose subnet is on one of
 * the host's interfaces. A macvlan container is on the parent's subnet and still cannot be reached from the host, and
 * an overlay network has no interface there.
 */
import { BlockList, isIPv4 } from "node:net";

import { addressBytes } from "../../base/model/address.ts";
import type { InterfaceAddress } from "../../kernel/rtnetlink.ts";
import type { EndpointFact, NetworkFact } from "../facts/fact.ts";
import { HOST_LIMITS } from "./limits.ts";

export interface Subnet {
  readonly address: string;
  readonly prefixLength: number;
}

export interface Reachable {
  /** The endpoint with those of its addresses that the host can reach; undefined if there is none. */
  readonly endpoint: EndpointFact | undefined;
  /** Every address is on a subnet of the host, or on no bridge at all. */
  readonly isSeen: boolean;
}

interface KnownSubnet extends Subnet {
  readonly list: BlockList;
}

export class HostSubnets {
  readonly #readAddresses: () => readonly InterfaceAddress[];
  #known: readonly KnownSubnet[] = [];
  #readMs = -Infinity;

  constructor(readAddresses: () => readonly InterfaceAddress[]) {
    this.#readAddresses = readAddresses;
  }

  reachable(endpoint: EndpointFact, network: NetworkFact | undefined): Reachable {
    if (network?.driver !== "bridge" || network.scope !== "local") return { endpoint: undefined, isSeen: true };
    const [ipv4, ipv6] = [endpoint.ipv4, endpoint.ipv6].map((each) => (this.#isOnSubnet(each) ? each : undefined));
    const isSeen = ipv4 === endpoint.ipv4 && ipv6 === endpoint.ipv6;
    return { endpoint: ipv4 === undefined && ipv6 === undefined ? undefined : { ...endpoint, ipv4, ipv6 }, isSeen };
  }

  /** The known subnet of an address. */
  subnetOf(address: string): Subnet | undefined {
    return this.#known.find(({ list }) => list.check(address, familyOf(address)));
  }

  /** A subnet that is not known may be that of a new network: reads the addresses again, but not for every container. */
  #isOnSubnet(address: string | undefined): boolean {
    if (address === undefined) return false;
    if (this.subnetOf(address) !== undefined) return true;
    if (performance.now() - this.#readMs < HOST_LIMITS.addressesMs) return false;
    this.#known = this.#readAddresses().filter(isSubnet).map(known);
    this.#readMs = performance.now();
    return this.subnetOf(address) !== undefined;
  }
}

/** Nothing else is on the subnet of a single address, and no container is on loopback. */
function isSubnet({ address, prefixLength }: Subnet): boolean {
  const bytes = addressBytes(address);
  return bytes !== undefined && bytes[0] !== 127 && prefixLength > 0 && prefixLength < bytes.length * 8;
}

function known({ address, prefixLength }: Subnet): KnownSubnet {
  const list = new BlockList();
  list.addSubnet(address, prefixLength, familyOf(address));
  return { address, prefixLength, list };
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv4(address) ? "ipv4" : "ipv6";
}
