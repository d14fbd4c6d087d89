/**
 * HostMembers: the containers that the host can reach, in the zone of its names, and the subnets that they are on.
 */
import { guard } from "../../base/lib/guard.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../facts/fact.ts";
import type { InterfaceAddress } from "../../kernel/rtnetlink.ts";
import { HostSubnets, type Subnet } from "./host-subnets.ts";
import { HostZone } from "./host-zone.ts";
import { HOST_LIMITS } from "./limits.ts";

interface HostMembersParts {
  readonly networkOf: (id: string) => NetworkFact | undefined;
  readonly readAddresses: () => readonly InterfaceAddress[];
  /** The subnets are others now. */
  readonly onSubnets: () => void;
}

export class HostMembers {
  readonly zone: HostZone;
  readonly #parts: HostMembersParts;
  readonly #subnets: HostSubnets;
  readonly #reachable = new Map<string, readonly EndpointFact[]>();
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
    if (this.#count(before, -1)) this.#parts.onSubnets();
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
    const [isMore, isLess] = [this.#count(reachable, 1), this.#count(before, -1)];
    if (isMore || isLess) this.#parts.onSubnets();
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

  /** Counts addresses on their subnets; returns whether a subnet came or went. */
  #count(endpoints: readonly EndpointFact[], by: 1 | -1): boolean {
    let isChanged = false;
    for (const { ipv4, ipv6 } of endpoints) {
      for (const address of [ipv4, ipv6]) {
        const subnet = address === undefined ? undefined : this.#subnets.subnetOf(address);
        if (subnet === undefined) continue;
        const key = `${subnet.address}/${subnet.prefixLength}`;
        const entry = this.#used.get(key) ?? { subnet, count: 0 };
        entry.count += by;
        if (entry.count <= 0) this.#used.delete(key);
        else this.#used.set(key, entry);
        isChanged ||= entry.count === (by === 1 ? 1 : 0);
      }
    }
    return isChanged;
  }
}
