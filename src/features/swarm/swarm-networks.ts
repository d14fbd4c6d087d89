/**
 * SwarmNetworks: the source of names that containers have from other machines. It comes before Docker's networks, because
 * several machines can have a container of one name: then only Docker's resolver knows all of them. For people it also says
 * what the engine lists: whose an address is, which service has a name, and all names.
 */
import type { AddressOwner, SwarmPlace } from "../../api/names.ts";
import { bareName } from "../../base/dns/name.ts";
import type { OwnName } from "../../base/model/visible-names.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { DockerNetworks } from "../../container/names/docker/networks.ts";
import type { NameSource, NodeContext } from "../../container/names/source/name-source.ts";
import { SLOT, type SwarmLists, TASKS, listedNames } from "./swarm-lists.ts";
import { SwarmNames, type SwarmNamesParts, type SwarmNetwork } from "./swarm-names.ts";

/** The end of SERVICE.SLOT. */
const OF_SLOT = new RegExp(`\\.${SLOT.source}$`);

interface SwarmNetworksParts extends Pick<SwarmNamesParts, "lists" | "engineVersion"> {
  readonly networks: DockerNetworks;
  /** Otherwise Docker's resolver answers all that these containers ask. */
  readonly asksDocker: boolean;
  /** The directory that this source is of is the current one from now on. */
  readonly onCurrent?: (source: SwarmNetworks) => void;
}

export class SwarmNetworks implements NameSource {
  readonly asksDocker: boolean;
  readonly #parts: SwarmNetworksParts;
  readonly #networks: DockerNetworks;
  readonly #lists: SwarmLists;

  constructor(parts: SwarmNetworksParts) {
    this.asksDocker = parts.asksDocker;
    this.#parts = parts;
    this.#networks = parts.networks;
    this.#lists = parts.lists;
  }

  succeed(): void {
    this.#parts.onCurrent?.(this);
  }

  namesFor(container: ContainerFact, node: NodeContext | undefined): SwarmNames | undefined {
    if (!this.asksDocker || node !== undefined) return undefined;
    const networks = this.#joinedBy(container);
    if (networks.length === 0) return undefined;
    const { lists, engineVersion } = this.#parts;
    return new SwarmNames({ networks, lists, engineVersion, local: this.#networks.namesFor(container) });
  }

  /** The swarm networks that containers of this engine are on. */
  get inUse(): readonly Pick<SwarmNetwork, "id" | "name">[] {
    return [...this.#networks.all()].flatMap(({ fact: { id, name, swarm }, names }) =>
      swarm !== undefined && !swarm.isIngress && names.size > 0 ? [{ id, name }] : [],
    );
  }

  /** The service or task that has an address on the networks of a container. */
  placeOf(container: ContainerFact, address: string): SwarmPlace | undefined {
    for (const { id, name } of this.#networks.acrossMachines(container)) {
      const place = this.#lists.placeOf(id, address);
      if (place !== undefined) return { ...place, network: name };
    }
    return undefined;
  }

  ownerOf(container: ContainerFact, address: string): AddressOwner | undefined {
    const swarm = this.placeOf(container, address);
    if (swarm === undefined) return undefined;
    const { name, network, service } = swarm;
    return { address, container: name, network, project: null, service, swarm };
  }

  /** The service, on the networks of a container, that a query for a name is about: of it, its tasks or one of its slots. */
  serviceCalled(container: ContainerFact, name: string): SwarmPlace | undefined {
    const folded = bareName(name);
    for (const { id, name: network } of this.#networks.acrossMachines(container)) {
      const suffix = `.${network.toLowerCase()}`;
      const bare = folded.endsWith(suffix) ? folded.slice(0, -suffix.length) : folded;
      const inside = bare.startsWith(TASKS) ? bare.slice(TASKS.length) : bare;
      const service =
        this.#lists.serviceCalled(id, inside) ?? this.#lists.serviceCalled(id, inside.replace(OF_SLOT, ""));
      if (service !== undefined) return { ...service, network };
    }
    return undefined;
  }

  /** A network of a container that has lost all other machines. */
  aloneOn(container: ContainerFact): { readonly network: string; readonly forMs: number } | undefined {
    for (const { id, name: network } of this.#networks.acrossMachines(container)) {
      const forMs = this.#lists.aloneForMs(id);
      if (forMs !== undefined) return { network, forMs };
    }
    return undefined;
  }

  *allNames(): Iterable<OwnName> {
    for (const { id, name } of this.inUse)
      for (const service of this.#lists.of(id).services) yield* listedNames(service, name);
  }

  #joinedBy(container: ContainerFact): SwarmNetwork[] {
    return this.#networks.acrossMachines(container).map(({ id, name, swarm }) => ({
      ...{ id, name },
      suffixFolded: this.#networks.suffixOf(id),
      subnets: swarm?.subnets ?? [],
    }));
  }
}
