/**
 * NameSources: the sources of names in order of precedence, as docs/names.md lists them: those of the core, each in a folder beside this
 * file, and those that features make for a directory or share between directories.
 */
import type { AddressOwner } from "../../api/names.ts";
import type { OwnName, VisibleNames } from "../../base/model/visible-names.ts";
import type { ContainerFact, NetworkFact, StoppedFact } from "../facts/fact.ts";
import { EngineHostName } from "./host-name/host-name.ts";
import type { HostContext, NameSource, NamedContainer, NetworkName, NodeContext } from "./source/name-source.ts";
import type { Labels } from "../facts/labels.ts";
import type { NameSettings } from "./source/name-settings.ts";
import type { DockerNetworks } from "./docker/networks.ts";
import type { OtherMachines } from "./services/member.ts";

/** The order of precedence. At one place, sources of features come behind those of the core, in the order of the list of features. */
const NAME_PLACES = [
  // What whoever asks is to see whatever containers are called.
  "first",
  // Reverse names only: the most specific one of an address.
  "zone-pointers",
  // Docker's names, so that nothing that is added changes what Docker answers: first those that several machines may have.
  "swarm",
  "networks",
  "default-bridge",
  // What the creator of a container has written into its hosts file.
  "extra-hosts",
  "declared",
  "zones",
  // What other machines and programs know.
  "shared",
  "engine-host",
  // What settings add to the names of containers, so that what one resolves without them stays as it is.
  "other-networks",
  "projects",
  "host-domain",
  // Wildcards come after every exact name.
  "extra-names",
  // Whoever else has the name has it now.
  "stopped",
] as const;

type NamePlace = (typeof NAME_PLACES)[number];

export interface PlacedNames {
  readonly place: NamePlace;
  readonly source: NameSource;
}

/** What features know that outlives a reload. */
export interface SharedNames {
  /** In the order of the list of features. */
  readonly sources: readonly PlacedNames[];
  /** What other machines have in the zones; undefined where nothing is known of others. */
  readonly machines: OtherMachines | undefined;
}

/** What a source of names can look into, of the directory that it is made for. */
export interface NameContext {
  /** Docker's networks, with the names that Docker gives containers there. They learn of changes before any source. */
  readonly networks: DockerNetworks;
  readonly networkOf: (id: string) => NetworkFact | undefined;
  /** The running containers. */
  readonly containers: () => Iterable<ContainerFact>;
  /** What all sources would call a container that is not running, beside Docker's names. */
  readonly namesOf: (stopped: StoppedFact, labels: Labels) => readonly NetworkName[];
  /** What other machines have in the zones; undefined where nothing is known of others. */
  readonly machines: OtherMachines | undefined;
  /** To be called in the step in which names have changed: no answer that was given before is valid any more. */
  readonly onChange: () => void;
}

interface NameSourcesParts extends Omit<NameContext, "namesOf" | "machines"> {
  readonly settings: NameSettings;
  /** Whether Docker's resolver answers for networks of several machines, of which no source has it asked. */
  readonly leavesToDocker: boolean;
  /** Those that features make: each time as many, in one order. */
  readonly makeNames: ((context: NameContext) => readonly PlacedNames[]) | undefined;
  /** The names of features that outlive a reload. */
  readonly shared: SharedNames | undefined;
}

export class NameSources {
  // Other parts talk to it.
  readonly engineHost: EngineHostName;
  readonly #networks: DockerNetworks;
  readonly #leavesToDocker: boolean;
  readonly #inOrder: readonly NameSource[];
  /** All but those that are shared. Docker's networks come first, because others look into them. */
  readonly #own: readonly NameSource[];

  constructor({ settings, leavesToDocker, makeNames, shared, ...parts }: NameSourcesParts) {
    const { networks, networkOf } = parts;
    const context: NameContext = {
      ...parts,
      machines: shared?.machines,
      namesOf: (stopped, labels) => this.#inOrder.flatMap((each) => each.namesOf?.(stopped, labels) ?? []),
    };
    this.engineHost = new EngineHostName(settings, networkOf);
    const ofCore: Partial<Record<NamePlace, NameSource>> = {
      networks,
      "engine-host": this.engineHost,
    };
    const elsewhere = shared?.sources ?? [];
    const placed = [
      ...Object.entries(ofCore).map(([place, source]) => ({ place, source })),
      ...elsewhere,
      ...(makeNames?.(context) ?? []),
    ];
    this.#inOrder = NAME_PLACES.flatMap((place) =>
      placed.filter((each) => each.place === place).map(({ source }) => source),
    );
    this.#own = [
      networks,
      ...this.#inOrder.filter((each) => each !== networks && !elsewhere.some(({ source }) => source === each)),
    ];
    this.#networks = networks;
    this.#leavesToDocker = leavesToDocker && !this.#inOrder.some(({ asksDocker }) => asksDocker === true);
  }

  /** Whether Docker's resolver answers for a container all that is not added to Docker's names. */
  isLeftToDocker(container: ContainerFact, node: NodeContext | undefined): boolean {
    return this.#leavesToDocker && node === undefined && this.#networks.acrossMachines(container).length > 0;
  }

  namesFor(container: ContainerFact, node: NodeContext | undefined): VisibleNames[] {
    const isLeft = this.isLeftToDocker(container, node);
    const sources = isLeft ? this.#inOrder.filter((source) => source !== this.#networks) : this.#inOrder;
    return sources.flatMap((source) => source.namesFor(container, node) ?? []);
  }

  ownerOf(container: ContainerFact, address: string): AddressOwner | undefined {
    for (const source of this.#inOrder) {
      const owner = source.ownerOf?.(container, address);
      if (owner !== undefined) return owner;
    }
    return undefined;
  }

  *allNames(): Iterable<OwnName> {
    for (const source of this.#inOrder) yield* source.allNames?.() ?? [];
  }

  namesForHost(host: HostContext): VisibleNames[] {
    return this.#inOrder.flatMap((source) => source.namesForHost?.(host) ?? []);
  }

  namesForEverybody(): VisibleNames[] {
    return this.#inOrder.flatMap((source) => source.namesForEverybody?.() ?? []);
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

  /** The containers that are not running, and of which names are kept; undefined while none are kept of any. */
  get stoppedIds(): ReadonlySet<string> | undefined {
    const kept = this.#own.flatMap(({ stoppedIds }) => (stoppedIds === undefined ? [] : [stoppedIds]));
    return kept.length === 0 ? undefined : new Set(kept.flatMap((ids) => [...ids]));
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
