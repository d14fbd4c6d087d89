/**
 * ServiceZones: the zones of the settings as a source of names, and which containers have names in them. Off by default.
 */
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { MISS, type ReverseName, type VisibleNames } from "../../base/model/visible-names.ts";
import type { VisibleSetting, LabelPolicy } from "../../base/model/name-choices.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { DockerNetworks } from "../../container/names/docker/networks.ts";
import type { HostContext, NameSource, NamedContainer, NodeContext } from "../../container/names/source/name-source.ts";
import { gatewaysOf, apartLast } from "../../container/names/source/gateways.ts";
import { visibilityOf } from "../../container/names/source/visibility.ts";
import { DnsZone } from "../../container/names/source/dns-zone.ts";
import {
  type MemberSet,
  type AddressHolder,
  EVERY,
  type MemberPlace,
  type OtherMachines,
  type ZoneMember,
} from "../../container/names/services/member.ts";
import { ZoneMembers } from "../../container/names/services/members.ts";
import type { ReachableAddresses } from "../../container/names/services/reachable-addresses.ts";
import { ZoneNames, pointerTo } from "../../container/names/services/zone-names.ts";
import { ZONE_LABELS, serviceWarning } from "../../container/facts/label-service.ts";
import { ignoredLabelWarning } from "../../container/facts/labels.ts";
import type { Settings } from "../../config/settings.ts";
import type { Running } from "../contract.ts";
import { reachableFromContainer, reachableFromHost } from "./reachable.ts";

/** Docker's resolver address in containers. */
const RESOLVER = "127.0.0.11";

export function open(): Running {
  return {
    makeNames: (settings, { networks, machines }) => {
      const zones = new ServiceZones(settings, networks, machines);
      return [
        { place: "zone-pointers", source: zones.pointers },
        { place: "zones", source: zones },
      ];
    },
    labelWarnings: (fact, labels, policy) => [
      serviceWarning(labels),
      ...ZONE_LABELS.map((key) => ignoredLabelWarning(key, fact, policy)),
    ],
  };
}

class ServiceZones implements NameSource {
  readonly #networks: DockerNetworks;
  readonly #members = new ZoneMembers();
  /** The members of this machine, and those of others. */
  readonly #all: MemberSet;
  readonly #remote: OtherMachines | undefined;
  readonly #zones: readonly DnsZone[];
  readonly #visible: VisibleSetting;
  readonly #labels: LabelPolicy;
  /** The reverse names, a source of their own: they come first. */
  readonly pointers: NameSource = { namesFor: (container) => this.#pointersFor(container) };

  constructor(
    settings: Pick<Settings, "zones" | "visible" | "labels">,
    networks: DockerNetworks,
    remote: OtherMachines | undefined,
  ) {
    this.#networks = networks;
    this.#zones = settings.zones.map((name) => new DnsZone(name));
    this.#visible = settings.visible;
    this.#labels = settings.labels;
    this.#remote = remote;
    this.#all = remote === undefined ? this.#members : new JoinedMembers(this.#members, remote);
  }

  join({ fact }: NamedContainer): void {
    if (this.#zones.length > 0) this.#members.put(fact, this.#labels);
  }

  leave({ id }: ContainerFact): void {
    this.#members.remove(id);
  }

  namesFor(container: ContainerFact, node: NodeContext | undefined): ZoneNames | undefined {
    if (this.#zones.length === 0) return undefined;
    return this.#namesIn(this.#zones, this.#reachableFrom(container), serversOf(container, node));
  }

  /** Its reverse names come first. */
  namesForHost({ zones: names, nameservers, reachable }: HostContext): readonly VisibleNames[] {
    const zones = this.#zones.filter(({ name }) => names.includes(name));
    const [first] = zones;
    if (first === undefined) return [];
    const ofHost = reachableFromHost(reachable);
    return [new ZonePointers(first, this.#members, ofHost), this.#namesIn(zones, ofHost, nameservers)];
  }

  #namesIn(zones: readonly DnsZone[], reachable: ReachableAddresses, servers: readonly string[]): ZoneNames {
    return new ZoneNames(zones, { members: this.#all, remote: this.#remote, reachable, servers });
  }

  #pointersFor(container: ContainerFact): ZonePointers | undefined {
    const [zone] = this.#zones;
    return zone && new ZonePointers(zone, this.#members, this.#reachableFrom(container));
  }

  #reachableFrom(container: ContainerFact): ReachableAddresses {
    const networkOf = this.#networks.fact.bind(this.#networks);
    return reachableFromContainer({
      networks: apartLast(
        this.#networks.joinedBy(container).map(({ endpoint }) => endpoint),
        networkOf,
      ).map(({ networkId }) => networkId),
      visibility: visibilityOf(container, this.#visible, networkOf),
      gateways: gatewaysOf(container, networkOf),
      networkOf,
    });
  }
}

/** The reverse names of containers in the first zone. They come before those of networks, and have no other names. */
class ZonePointers implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.zone;
  readonly #zone: DnsZone;
  readonly #members: MemberSet;
  readonly #reachable: ReachableAddresses;

  constructor(zone: DnsZone, members: MemberSet, reachable: ReachableAddresses) {
    this.#zone = zone;
    this.#members = members;
    this.#reachable = reachable;
  }

  find(): number {
    return MISS;
  }

  pointer(labels: Uint8Array, length: number, hash: number): ReverseName | undefined {
    return pointerTo(this.#zone, this.#members.withAddress(labels, length, hash), this.#reachable);
  }
}

/** The addresses at which dns11 answers: pods of a node reach it at the node's. */
function serversOf({ nameservers }: ContainerFact, node: NodeContext | undefined): readonly string[] {
  if (node !== undefined) return node.ownAddresses;
  return nameservers.kind === "captured" ? nameservers.servers : [RESOLVER];
}

/**
 * The members of services on all machines: those of this machine, and those that others publish. The
 * first come first.
 */
class JoinedMembers implements MemberSet {
  readonly #own: MemberSet;
  readonly #remote: OtherMachines;

  constructor(own: MemberSet, remote: OtherMachines) {
    this.#own = own;
    this.#remote = remote;
  }

  *groups(place: MemberPlace): Iterable<Iterable<ZoneMember>> {
    yield* this.#own.groups(place);
    yield* this.#remote.members.groups(place);
  }

  *services(): Iterable<readonly ZoneMember[]> {
    const seen = new Set<string>();
    const key = ({ project, service }: ZoneMember): string => `${project}/${service}`;
    for (const own of this.#own.services()) {
      const [first] = own;
      if (first === undefined) continue;
      seen.add(key(first));
      const { project, service } = first;
      const others = [...this.#remote.members.groups({ project, service, host: EVERY })];
      yield [...own, ...others.flatMap((group) => [...group])];
    }
    for (const others of this.#remote.members.services())
      if (others[0] !== undefined && !seen.has(key(others[0]))) yield others;
  }

  withAddress(labels: Uint8Array, length: number, hash: number): readonly AddressHolder[] {
    const own = this.#own.withAddress(labels, length, hash);
    return own.length > 0 ? own : this.#remote.members.withAddress(labels, length, hash);
  }
}
