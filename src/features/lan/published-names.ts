/**
 * PublishedNames: the containers that other machines reach through this one, by the names that they have on the host and in zones.
 * A container with published ports has the machine's own address, at which it was asked; one on a macvlan or ipvlan network has its
 * own. Others do not exist here.
 */
import { addressBytes } from "../../base/model/address.ts";
import type { LabelPolicy } from "../../base/model/label-policy.ts";
import type { OwnName, QuestionName, NameSearch, VisibleNames } from "../../base/model/visible-names.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../../container/facts/fact.ts";
import { HostZone } from "../../container/names/host-domain/host-zone.ts";
import { EVERYWHERE } from "../../container/names/zone/member.ts";
import { ZoneMembers } from "../../container/names/zone/members.ts";
import { ReachableAddresses } from "../../container/names/zone/reachable-addresses.ts";
import { DnsZone } from "../../container/names/source/dns-zone.ts";
import { ZoneNames } from "../../container/names/zone/zone-names.ts";
import { ON_THE_WIRE, isBoundAt, publishedMember } from "../../container/names/zone/published-member.ts";

export interface PublishedNamesParts {
  /** The domain of container names on the host. */
  readonly domain: string;
  readonly zones: readonly string[];
  readonly labels: LabelPolicy;
  /** Those of the machine, at most one of each family. */
  readonly addresses: readonly string[];
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

/** Whoever asks here is on no network of containers, and so is told apart by none. */
const EQUAL_RANK = (): number => 0;
/** In explanations, where another machine's name would be. */
const THIS_MACHINE = "this machine";

export class PublishedNames {
  readonly #parts: PublishedNamesParts;
  readonly #domain: HostZone;
  readonly #members = new ZoneMembers();
  readonly #zones: ZoneNames | undefined;
  readonly #endpoints = new Map<string, readonly EndpointFact[]>();

  constructor(parts: PublishedNamesParts) {
    const { domain, zones, addresses: servers } = parts;
    this.#parts = parts;
    this.#domain = new HostZone(domain, "that other machines can reach");
    const reachable = new ReachableAddresses((endpoint) => endpoint, EQUAL_RANK);
    const lookup = { members: this.#members, remote: undefined, reachable, servers };
    this.#zones =
      zones.length === 0
        ? undefined
        : new ZoneNames(
            zones.map((name) => new DnsZone(name)),
            lookup,
          );
  }

  /** The zones first, as on the host. */
  get sources(): readonly VisibleNames[] {
    return [...(this.#zones === undefined ? [] : [this.#zones]), withoutPointers(this.#domain)];
  }

  put(fact: ContainerFact): void {
    const endpoints = this.#reached(fact);
    this.#domain.put(fact, this.#endpoints.get(fact.id) ?? [], endpoints);
    this.#endpoints.set(fact.id, endpoints);
    this.#putMember(fact);
  }

  remove(id: string): void {
    this.#domain.remove(id, this.#endpoints.get(id) ?? []);
    this.#endpoints.delete(id);
    this.#members.remove(id);
  }

  /** The container's endpoints, with the addresses at which others reach it. */
  #reached({ endpoints, ports: { bound = [] } }: ContainerFact): EndpointFact[] {
    const { addresses, networkOf } = this.#parts;
    const [ipv4, ipv6] = [4, 16].map((length) =>
      addresses.find((each) => addressBytes(each)?.length === length && bound.some((port) => isBoundAt(port, each))),
    );
    return endpoints.flatMap((endpoint) => {
      if (ON_THE_WIRE.has(networkOf(endpoint.networkId)?.driver ?? "")) return [endpoint];
      return ipv4 === undefined && ipv6 === undefined ? [] : [{ ...endpoint, ipv4, ipv6 }];
    });
  }

  #putMember(fact: ContainerFact): void {
    const { labels, addresses, networkOf } = this.#parts;
    this.#members.remove(fact.id);
    if (this.#zones === undefined) return;
    try {
      const context = { routedNetworks: [], labels, addresses, networkOf };
      const { project, service, hosts, isReady, reach, ports, v4, v6 } = publishedMember(fact, context);
      if (reach === "swarm") return;
      const endpoints = [{ networkId: EVERYWHERE, v4, v6 }];
      const remote = { machine: THIS_MACHINE, reach, unless: [] };
      this.#members.add({ project, service, hosts, id: fact.id, isReady, ports, endpoints, remote });
    } catch {
      // It is in no service, or others do not reach it.
    }
  }
}

/** Many containers have the address of the machine: it is that of none. */
function withoutPointers(zone: HostZone): VisibleNames {
  return {
    kind: zone.kind,
    places: zone.places,
    find: (name: QuestionName, search: NameSearch): number => zone.find(name, search),
    pointer: () => undefined,
    list: (): Iterable<OwnName> => zone.list(),
  };
}
