/**
 * OtherNetworks: NAME.NETWORK of networks that a container is not on, where settings allow it. Only addresses that have
 * a route from the container are answered. It is the last source, so that what a container resolves otherwise stays as it is.
 */
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { sameBytes } from "../../base/dns/name.ts";
import type { VisibleSetting } from "../../base/model/name-choices.ts";
import {
  type QuestionName,
  MISS,
  type NameSearch,
  type OwnName,
  type ReverseName,
  type VisibleNames,
} from "../../base/model/visible-names.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { DockerNetworks } from "../../container/names/docker/networks.ts";
import type { NameSource } from "../../container/names/source/name-source.ts";
import { type Visibility, visibilityOf } from "../../container/names/source/visibility.ts";
import type { Running } from "../contract.ts";

export function open(): Running {
  return {
    makeNames: ({ visible }, { networks }) => ({
      place: "other-networks",
      source: new OtherNetworks(visible, networks),
    }),
  };
}

class NamesElsewhere implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.otherNetwork;
  readonly #networks: DockerNetworks;
  readonly #visibility: Visibility;

  constructor(networks: DockerNetworks, visibility: Visibility) {
    this.#networks = networks;
    this.#visibility = visibility;
  }

  find(name: QuestionName, search: NameSearch): number {
    for (let labels = name.labelCount - 1; labels > 0; labels--) {
      const length = name.lengthOf[labels] as number;
      for (const network of this.#networks.withSuffixOf(name.foldedLength - length)) {
        const { suffixFolded: suffix, name: title } = network.visible;
        if (suffix === undefined || !sameBytes(name.folded, length, suffix, 0, suffix.length)) continue;
        if (!this.#visibility.sees(network.fact)) continue;
        const found = network.names.lookup(name.folded, length, name.hashOf[labels] as number);
        if (found === undefined) continue;
        search.trace?.record(
          "names",
          `a name on "${title}", a network that this container is not on (setting visible)`,
        );
        return search.found(this.#visibility.reachable(found), true);
      }
    }
    return MISS;
  }

  *list(): Iterable<OwnName> {
    for (const { fact, names } of this.#networks.all()) {
      if (!this.#visibility.sees(fact)) continue;
      for (const [name, entry] of names.list()) {
        const { v4, v6 } = this.#visibility.reachable(entry);
        const whole = `${name}.${fact.name.toLowerCase()}`;
        yield { name: whole, source: "other network", network: fact.name, holders: entry.holders, v4, v6 };
      }
    }
  }

  pointer(labels: Uint8Array, length: number, hash: number): ReverseName | undefined {
    for (const network of this.#networks.all()) {
      const pointer = this.#visibility.sees(network.fact) ? network.names.pointer(labels, length, hash) : undefined;
      if (pointer !== undefined) return pointer;
    }
    return undefined;
  }
}

export class OtherNetworks implements NameSource {
  readonly #networks: DockerNetworks;
  readonly #visible: VisibleSetting;

  constructor(visible: VisibleSetting, networks: DockerNetworks) {
    this.#networks = networks;
    this.#visible = visible;
  }

  namesFor(container: ContainerFact): VisibleNames | undefined {
    const visibility = visibilityOf(container, this.#visible, (id) => this.#networks.fact(id));
    return visibility && new NamesElsewhere(this.#networks, visibility);
  }
}
