/**
 * Members: the containers that the host can reach, with their names below its domain, the subnets that they are on, and the reverse
 * zones of these.
 */
import { BlockList, isIPv4 } from "node:net";

import { wireLabels } from "../../base/dns/name.ts";
import { guard } from "../../base/lib/guard.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../../container/facts/fact.ts";
import { HostZone } from "../../container/names/host-domain/host-zone.ts";
import type { InterfaceAddress } from "../../kernel/rtnetlink.ts";
import { HOST_LIMITS } from "./limits.ts";

interface HostMembersParts {
  readonly networkOf: (id: string) => NetworkFact | undefined;
  readonly readAddresses: () => readonly InterfaceAddress[];
  /** The subnets are others now. */
  readonly onSubnets: () => void;
}

const OCTET_BITS = 8;
const OCTETS_MAX = 3;
const NIBBLE_BITS = 4;

export interface Subnet {
  readonly address: string;
  readonly prefixLength: number;
}

interface Reachable {
  /** The endpoint with those of its addresses that the host can reach; undefined if there is none. */
  readonly endpoint: EndpointFact | undefined;
  /** Every address is on a subnet of the host, or on no bridge at all. */
  readonly isSeen: boolean;
}

interface KnownSubnet extends Subnet {
  readonly list: BlockList;
}

/** The containers that the host can reach, in the zone of its names, and the subnets that they are on. */
export class HostMembers {
  readonly zone: HostZone;
  readonly #parts: HostMembersParts;
  readonly #subnets: HostSubnets;
  readonly #reachable = new Map<string, readonly EndpointFact[]>();
  /** Those that each container was counted on: by now the host may have others. */
  readonly #subnetsOf = new Map<string, readonly Subnet[]>();
  /** The subnets in use, with the number of addresses on each. */
  readonly #used = new Map<string, { readonly subnet: Subnet; count: number }>();
  /** Containers on a bridge whose interface was not seen: it may be new. */
  readonly #unseen = new Map<string, ContainerFact>();
  #timer: NodeJS.Timeout | undefined;

  constructor(domain: string, parts: HostMembersParts) {
    this.zone = new HostZone(domain);
    this.#parts = parts;
    this.#subnets = new HostSubnets(parts.readAddresses);
  }

  get subnets(): Subnet[] {
    return [...this.#used.values()].map(({ subnet }) => subnet);
  }

  /** The endpoints of a container, with those of its addresses that the host can reach. */
  reachable(id: string): readonly EndpointFact[] {
    return this.#reachable.get(id) ?? [];
  }

  put(fact: ContainerFact): void {
    if (this.#put(fact)) return;
    this.#unseen.set(fact.id, fact);
    this.#timer ??= setTimeout(() => this.#retry(), HOST_LIMITS.addressesMs).unref();
  }

  remove(id: string): void {
    this.#unseen.delete(id);
    const before = this.#reachable.get(id) ?? [];
    this.#reachable.delete(id);
    this.zone.remove(id, before);
    if (this.#recount(id, [])) this.#parts.onSubnets();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Whether the host's interface of every bridge network was seen. */
  #put(fact: ContainerFact): boolean {
    const before = this.#reachable.get(fact.id) ?? [];
    const found = fact.endpoints.map((endpoint) =>
      this.#subnets.reachable(endpoint, this.#parts.networkOf(endpoint.networkId)),
    );
    const reachable = found.flatMap(({ endpoint }) => endpoint ?? []);
    this.#reachable.set(fact.id, reachable);
    this.zone.put(fact, before, reachable);
    if (this.#recount(fact.id, reachable)) this.#parts.onSubnets();
    return found.every(({ isSeen }) => isSeen);
  }

  #retry(): void {
    this.#timer = undefined;
    const facts = [...this.#unseen.values()];
    this.#unseen.clear();
    guard.run("timer", 0, () => {
      for (const fact of facts) this.#put(fact);
    });
  }

  /** Counts the addresses of a container on their subnets, in place of those before; returns whether a subnet came or went. */
  #recount(id: string, endpoints: readonly EndpointFact[]): boolean {
    const before = this.#subnetsOf.get(id) ?? [];
    const subnets = endpoints
      .flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6])
      .flatMap((address) => (address === undefined ? [] : (this.#subnets.subnetOf(address) ?? [])));
    if (subnets.length > 0) this.#subnetsOf.set(id, subnets);
    else this.#subnetsOf.delete(id);
    const [isMore, isLess] = [this.#count(subnets, 1), this.#count(before, -1)];
    return isMore || isLess;
  }

  #count(subnets: readonly Subnet[], by: 1 | -1): boolean {
    let isChanged = false;
    for (const subnet of subnets) {
      const key = `${subnet.address}/${subnet.prefixLength}`;
      const entry = this.#used.get(key) ?? { subnet, count: 0 };
      entry.count += by;
      if (entry.count <= 0) this.#used.delete(key);
      else this.#used.set(key, entry);
      isChanged ||= entry.count === (by === 1 ? 1 : 0);
    }
    return isChanged;
  }
}

/**
 * Which containers the host can reach: those on a bridge network of this engine whose subnet is on one of the host's
 * interfaces. A macvlan container is on the parent's subnet and still cannot be reached from the host, and an overlay
 * network has no interface there.
 */
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

/**
 * The reverse DNS zones of subnets, without duplicates, at most the limit. A subnet that ends within an octet is several zones; one
 * that would be very many is a zone that is larger than it. IPv6 zones end at a multiple of four bits.
 */
export function reverseZoneNames(subnets: Iterable<Subnet>): string[] {
  const names = new Set<string>();
  for (const subnet of subnets) for (const name of zonesOf(subnet)) names.add(name);
  return [...names].slice(0, HOST_LIMITS.reverseZones);
}

/** The same as wire names, each with its final zero byte. */
export function reverseZones(subnets: Iterable<Subnet>): Uint8Array[] {
  return reverseZoneNames(subnets).map(wireName);
}

/** The name as a query carries it. */
export function wireName(name: string): Uint8Array {
  return Buffer.concat([wireLabels(name) as Uint8Array, Buffer.of(0)]);
}

function zonesOf({ address, prefixLength }: Subnet): string[] {
  const bytes = addressBytes(address);
  if (bytes === undefined) return [];
  if (bytes.length === 4) return ipv4Zones(bytes, prefixLength);
  const digits = [...Buffer.from(bytes).toString("hex")].slice(0, Math.floor(prefixLength / NIBBLE_BITS));
  return [`${digits.toReversed().join(".")}.ip6.arpa`];
}

function ipv4Zones(bytes: Uint8Array, prefixLength: number): string[] {
  const exact = Math.min(OCTETS_MAX, Math.ceil(prefixLength / OCTET_BITS));
  const bits = exact * OCTET_BITS - prefixLength;
  // A prefix longer than 24 bits is within one zone of 24.
  const isSplit = bits > 0 && 2 ** bits <= HOST_LIMITS.zonesOfSubnet;
  const octets = bits <= 0 || isSplit ? exact : exact - 1;
  const fixed = [...bytes.subarray(0, octets)];
  const last = octets - 1;
  if (octets === 0) return [];
  const count = isSplit ? 2 ** bits : 1;
  const base = isSplit ? (fixed[last] as number) & ~(count - 1) : (fixed[last] as number);
  return Array.from({ length: count }, (_, index) => {
    const octetsOfZone = fixed.with(last, base + index);
    return `${octetsOfZone.toReversed().join(".")}.in-addr.arpa`;
  });
}
