/**
 * SwarmPlaces: what the engine lists of the swarm, for people: whose an address is, which service has a name, and all names.
 */
import { bareName } from "../../../base/dns/name.ts";
import type { OwnName } from "../../../base/model/visible-names.ts";
import type { SwarmPlace } from "../../../base/model/swarm-place.ts";
import type { ContainerFact } from "../../facts/fact.ts";
import { SLOT, TASKS, listedNames } from "./listed-names.ts";
import type { SwarmNetworks } from "./swarm-networks.ts";

/** The end of SERVICE.SLOT. */
const OF_SLOT = new RegExp(`\\.${SLOT.source}$`);

export class SwarmPlaces {
  readonly #source: SwarmNetworks;

  constructor(source: SwarmNetworks) {
    this.#source = source;
  }

  /** Looks on the networks of a container. */
  placeOf(container: ContainerFact, address: string): SwarmPlace | undefined {
    for (const { id, name } of this.#source.joinedBy(container)) {
      const place = this.#source.lists.placeOf(id, address);
      if (place !== undefined) return { ...place, network: name };
    }
    return undefined;
  }

  /** The service, on the networks of a container, that a query for a name is about: of it, its tasks or one of its slots. */
  serviceCalled(container: ContainerFact, name: string): SwarmPlace | undefined {
    const folded = bareName(name);
    for (const { id, name: network } of this.#source.joinedBy(container)) {
      const suffix = `.${network.toLowerCase()}`;
      const bare = folded.endsWith(suffix) ? folded.slice(0, -suffix.length) : folded;
      const inside = bare.startsWith(TASKS) ? bare.slice(TASKS.length) : bare;
      const { lists } = this.#source;
      const service = lists.serviceCalled(id, inside) ?? lists.serviceCalled(id, inside.replace(OF_SLOT, ""));
      if (service !== undefined) return { ...service, network };
    }
    return undefined;
  }

  /** A network of a container that has lost all other machines. */
  aloneOn(container: ContainerFact): { readonly network: string; readonly forMs: number } | undefined {
    for (const { id, name: network } of this.#source.joinedBy(container)) {
      const forMs = this.#source.lists.aloneForMs(id);
      if (forMs !== undefined) return { network, forMs };
    }
    return undefined;
  }

  /** Names of every network with a container of this engine. */
  *names(): Iterable<OwnName> {
    for (const { id, name } of this.#source.inUse)
      for (const service of this.#source.lists.of(id).services) yield* listedNames(service, name);
  }
}
