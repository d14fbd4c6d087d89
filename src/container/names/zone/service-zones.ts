/**
 * ServiceZones: the zones of the settings as a source of names, and which containers have names in them. Off by default.
 */
import type { LabelPolicy } from "../../../base/model/label-policy.ts";
import type { VisibleNames } from "../../../base/model/visible-names.ts";
import type { VisibleSetting } from "../../../base/model/name-choices.ts";
import type { ContainerFact } from "../../facts/fact.ts";
import type { DockerNetworks } from "../docker/networks.ts";
import type { NameSource, NamedContainer, NodeContext } from "../source/name-source.ts";
import { apartLast } from "../source/apart-last.ts";
import { gatewaysOf } from "../source/gateways.ts";
import { visibilityOf } from "../source/visibility.ts";
import type { NameSettings } from "../source/name-settings.ts";
import { DnsZone } from "../source/dns-zone.ts";
import {
  type MemberSet,
  type AddressHolder,
  EVERY,
  type MemberPlace,
  type OtherMachines,
  type ZoneMember,
} from "./member.ts";
import { ZoneMembers } from "./members.ts";
import { type ReachableAddresses, reachableFromContainer } from "./reachable-addresses.ts";
import { ZoneNames, ZonePointers } from "./zone-names.ts";

/** Docker's resolver address in containers. */
const RESOLVER = "127.0.0.11";

export class ServiceZones implements NameSource {
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
    settings: Pick<NameSettings, "zones" | "visible" | "labels">,
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

  /** The zones with these names as the host resolves them, its reverse names first. */
  namesOnHost(
    names: readonly string[],
    reachable: ReachableAddresses,
    servers: readonly string[],
  ): readonly VisibleNames[] {
    const zones = this.#zones.filter(({ name }) => names.includes(name));
    const [first] = zones;
    if (first === undefined) return [];
    return [new ZonePointers(first, this.#members, reachable), this.#namesIn(zones, reachable, servers)];
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
