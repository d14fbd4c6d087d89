/**
 * SwarmNetworks: the source of names that containers have from other machines. It comes before Docker's networks, because
 * several machines can have a container of one name: then only Docker's resolver knows all of them.
 */
import type { ContainerFact } from "../../facts/fact.ts";
import type { DockerNetworks } from "../docker/networks.ts";
import type { NameSource, NodeContext } from "../source/name-source.ts";
import type { NameSettings } from "../source/name-settings.ts";
import type { SwarmList } from "../../facts/swarm-fact.ts";
import { SwarmLists } from "./swarm-lists.ts";
import { type SwarmNetwork, SwarmNames } from "./swarm-names.ts";

/** The first engines that answer each query, and whose DNS library refuses to forward a guarded one. */
const GUARDED_MAJOR_MIN = 24;
/**
 * The first engines that answer AAAA of a name without an IPv6 address themselves. Older ones forward it; no engine up to now
 * has an IPv6 address of a swarm's name, so there is nothing to ask them for.
 */
const IPV6_MAJOR_MIN = 28;

export class SwarmNetworks implements NameSource {
  #lists = new SwarmLists();
  readonly #networks: DockerNetworks;
  readonly #setting: NameSettings["swarm"];
  readonly #onChange: () => void;
  #isGuarded = true;
  #answersIPv6 = true;

  constructor({ swarm }: Pick<NameSettings, "swarm">, networks: DockerNetworks, onChange: () => void) {
    this.#networks = networks;
    this.#setting = swarm;
    this.#onChange = onChange;
  }

  /** Existing views do not change. Returns whether they would. */
  setEngine(major: number): boolean {
    const isGuarded = major >= GUARDED_MAJOR_MIN;
    const answersIPv6 = major >= IPV6_MAJOR_MIN;
    const isChange = isGuarded !== this.#isGuarded || answersIPv6 !== this.#answersIPv6;
    this.#isGuarded = isGuarded;
    this.#answersIPv6 = answersIPv6;
    return isChange;
  }

  get lists(): SwarmLists {
    return this.#lists;
  }

  /** The engine has listed the services of a network; most lists say nothing new. */
  putList(networkId: string, list: SwarmList): void {
    if (this.#lists.put(networkId, list)) this.#onChange();
  }

  removeList(networkId: string): void {
    this.#lists.remove(networkId);
    this.#onChange();
  }

  succeed(current: SwarmNetworks): void {
    this.#lists = current.#lists;
    this.#isGuarded = current.#isGuarded;
    this.#answersIPv6 = current.#answersIPv6;
  }

  /** Whether Docker's resolver answers everything for a container. */
  leavesToDocker(container: ContainerFact, node: NodeContext | undefined): boolean {
    return this.#setting === "as-docker" && node === undefined && this.joinedBy(container).length > 0;
  }

  /** A source that is left out for containers whose every query Docker's resolver answers. */
  unlessLeft(source: NameSource): NameSource {
    return {
      namesFor: (container, node) =>
        this.leavesToDocker(container, node) ? undefined : source.namesFor(container, node),
    };
  }

  namesFor(container: ContainerFact, node: NodeContext | undefined): SwarmNames | undefined {
    if (this.#setting !== "asked" || node !== undefined) return undefined;
    const networks = this.joinedBy(container);
    if (networks.length === 0) return undefined;
    const local = this.#networks.namesFor(container);
    return new SwarmNames({
      networks,
      lists: this.#lists,
      local,
      isGuarded: this.#isGuarded,
      answersIPv6: this.#answersIPv6,
    });
  }

  /** The swarm networks that containers of this engine are on. */
  get inUse(): readonly Pick<SwarmNetwork, "id" | "name">[] {
    return [...this.#networks.all()].flatMap(({ fact: { id, name, swarm }, names }) =>
      swarm !== undefined && !swarm.isIngress && names.size > 0 ? [{ id, name }] : [],
    );
  }

  /** The swarm networks of a container that have names. */
  joinedBy(container: ContainerFact): SwarmNetwork[] {
    return this.#networks.joinedBy(container).flatMap(({ network: { id, name, swarm } }) => {
      if (swarm === undefined || swarm.isIngress) return [];
      return [{ id, name, suffixFolded: this.#networks.suffixOf(id), subnets: swarm.subnets }];
    });
  }
}
