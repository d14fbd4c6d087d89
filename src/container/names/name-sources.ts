/**
 * NameSources: the sources of names in order of precedence, as docs/names.md lists them. A source is a folder beside this
 * file and a line in it.
 */
import type { VisibleNames } from "../../base/model/visible-names.ts";
import type { ContainerFact, NetworkFact, StoppedFact } from "../facts/fact.ts";
import { DeclaredNames } from "./declared/declared-names.ts";
import { DefaultBridgeNames } from "./default-bridge/default-bridge.ts";
import { ExtraNames } from "./extra/extra-names.ts";
import { EXTRA_HOSTS } from "./extra-hosts/extra-hosts.ts";
import { HostDomainNames } from "./host-domain/host-domain-names.ts";
import { EngineHostName } from "./host-name/host-name.ts";
import type { NameSource, NamedContainer, NodeContext } from "./source/name-source.ts";
import { OtherNetworks } from "./other-networks/other-networks.ts";
import { ProjectNames } from "./projects/project-names.ts";
import type { SharedNames } from "./shared-names.ts";
import type { NameSettings } from "./source/name-settings.ts";
import type { DockerNetworks } from "./docker/networks.ts";
import { StoppedNames } from "./stopped/stopped-names.ts";
import { SwarmNetworks } from "./swarm/swarm-networks.ts";
import { ServiceZones } from "./zone/service-zones.ts";

interface NameSourcesParts {
  readonly settings: NameSettings;
  /** Docker's networks, with the names that Docker gives containers there. */
  readonly networks: DockerNetworks;
  /** The running containers. */
  readonly containers: () => Iterable<ContainerFact>;
  /** Those that come before all others. */
  readonly first?: readonly NameSource[] | undefined;
  /** The names of features. */
  readonly shared: SharedNames | undefined;
  /** Called in the step in which names have changed: no answer that was given before is valid any more. */
  readonly onChange: () => void;
}

export class NameSources {
  // Other parts talk to these.
  readonly declared: DeclaredNames;
  readonly engineHost: EngineHostName;
  readonly hostDomain: HostDomainNames;
  readonly stopped: StoppedNames;
  readonly swarm: SwarmNetworks;
  readonly zones: ServiceZones;
  readonly #inOrder: readonly NameSource[];
  /** All but those from elsewhere, which outlive a reload. Docker's networks come first, because others look into them. */
  readonly #own: readonly NameSource[];

  constructor({ settings, networks, containers, first = [], shared, onChange }: NameSourcesParts) {
    const networkOf = networks.fact.bind(networks);
    const elsewhere = shared?.sources ?? [];
    this.#inOrder = [
      ...first,
      // Reverse names only: the most specific one of an address.
      (this.zones = new ServiceZones(settings, networks, shared?.machines)).pointers,
      // Docker's names take precedence: first those that several machines may have.
      (this.swarm = new SwarmNetworks(settings, networks, onChange)),
      this.swarm.unlessLeft(networks),
      new DefaultBridgeNames(settings),
      EXTRA_HOSTS,
      (this.declared = new DeclaredNames(settings, onChange)),
      this.zones,
      ...elsewhere,
      (this.engineHost = new EngineHostName(settings, networkOf)),
      new OtherNetworks(settings, networks),
      new ProjectNames(settings, networkOf),
      (this.hostDomain = new HostDomainNames({ settings, networkOf, containers, onChange })),
      // Wildcards come after every exact name.
      new ExtraNames(networkOf),
      // Whoever else has the name has it now.
      (this.stopped = new StoppedNames(settings, networks.hasAddress.bind(networks))),
    ];
    this.#own = [networks, ...this.#inOrder.filter((each) => !elsewhere.includes(each))];
  }

  namesFor(container: ContainerFact, node: NodeContext | undefined): VisibleNames[] {
    return this.#inOrder.flatMap((source) => source.namesFor(container, node) ?? []);
  }

  namesForHost(zones: readonly string[]): VisibleNames[] {
    return this.#inOrder.flatMap((source) => source.namesForHost?.(zones) ?? []);
  }

  join(container: NamedContainer): void {
    for (const source of this.#own) source.join?.(container);
  }

  leave(fact: ContainerFact): void {
    for (const source of this.#own) source.leave?.(fact);
  }

  putNetwork(fact: NetworkFact): void {
    for (const source of this.#own) source.putNetwork?.(fact);
  }

  removeNetwork(id: string): void {
    for (const source of this.#own) source.removeNetwork?.(id);
  }

  putStopped(fact: StoppedFact, before: ContainerFact | undefined): void {
    for (const source of this.#own) source.putStopped?.(fact, before);
  }

  removeStopped(id: string): void {
    for (const source of this.#own) source.removeStopped?.(id);
  }

  *catchUp(current: NameSources): Generator<void> {
    for (const [index, source] of this.#own.entries()) yield* source.catchUp?.(current.#at(index)) ?? [];
  }

  succeed(current: NameSources): void {
    for (const [index, source] of this.#own.entries()) source.succeed?.(current.#at(index));
  }

  #at(index: number): NameSource {
    return this.#own[index] as NameSource;
  }
}
