/**
 * ServiceZones: the zones of the settings as a source of names, and which containers have names in them. Off by default.
 */
import { LABEL_DEFAULTS, type LabelPolicy } from "../../../base/model/label-policy.ts";
import type { VisibleNames } from "../../../base/model/visible-names.ts";
import type { VisibleSetting } from "../../../base/model/visible-setting.ts";
import type { ContainerFact } from "../../registry/fact.ts";
import type { DockerNetworks } from "../docker/networks.ts";
import type { NameSource, NodeContext } from "../name-source.ts";
import { gatewaysOf } from "../gateways.ts";
import { outlookOf } from "../outlook.ts";
import { JoinedMembers } from "./joined-members.ts";
import type { MemberSet } from "./member.ts";
import { ZoneMembers } from "./members.ts";
import { type Reach, containerReach } from "./reach.ts";
import type { RemoteMembers } from "./remote-members.ts";
import { DnsZone } from "../dns-zone.ts";
import { ZoneNames, ZonePointers } from "./zone-names.ts";

/** Docker's resolver address in containers. */
const RESOLVER = "127.0.0.11";

export class ServiceZones implements NameSource {
  readonly #networks: DockerNetworks;
  readonly #members = new ZoneMembers();
  /** Those of this machine, and with etcd those that others publish. */
  readonly #all: MemberSet;
  readonly #remote: RemoteMembers | undefined;
  #zones: readonly DnsZone[] = [];
  #visible: VisibleSetting = "network";
  #labelPolicy: LabelPolicy = LABEL_DEFAULTS;
  /** The reverse names, a source of their own: they come first. */
  readonly pointers: NameSource = { namesFor: (container) => this.#pointersFor(container) };

  constructor(networks: DockerNetworks, remote?: RemoteMembers) {
    this.#networks = networks;
    this.#remote = remote;
    this.#all = remote === undefined ? this.#members : new JoinedMembers(this.#members, remote);
  }

  /** Sets the zones, for containers from now on. */
  setZones(zones: readonly string[]): void {
    this.#zones = zones.map((name) => new DnsZone(name));
  }

  /** Existing names do not change. */
  setVisible(setting: VisibleSetting): void {
    this.#visible = setting;
  }

  setLabelPolicy(policy: LabelPolicy): void {
    this.#labelPolicy = policy;
  }

  join(fact: ContainerFact): void {
    if (this.#zones.length > 0) this.#members.put(fact, this.#labelPolicy);
  }

  leave(id: string): void {
    this.#members.remove(id);
  }

  namesFor(container: ContainerFact, node: NodeContext | undefined): ZoneNames | undefined {
    if (this.#zones.length === 0) return undefined;
    return this.#namesIn(this.#zones, this.#reachOf(container), serversOf(container, node));
  }

  /** The zones with these names as the host resolves them, its reverse names first. */
  namesOnHost(names: readonly string[], reach: Reach, servers: readonly string[]): readonly VisibleNames[] {
    const zones = this.#zones.filter(({ name }) => names.includes(name));
    const [first] = zones;
    if (first === undefined) return [];
    return [new ZonePointers(first, this.#members, reach), this.#namesIn(zones, reach, servers)];
  }

  #namesIn(zones: readonly DnsZone[], reach: Reach, servers: readonly string[]): ZoneNames {
    return new ZoneNames(zones, { members: this.#all, remote: this.#remote, reach, servers });
  }

  #pointersFor(container: ContainerFact): ZonePointers | undefined {
    const [zone] = this.#zones;
    return zone && new ZonePointers(zone, this.#members, this.#reachOf(container));
  }

  #reachOf(container: ContainerFact): Reach {
    const networkOf = this.#networks.fact.bind(this.#networks);
    return containerReach({
      networks: this.#networks.joinedBy(container).map(({ network }) => network.id),
      outlook: outlookOf(container, this.#visible, networkOf),
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
