/**
 * ExtraNames: names that containers have beside Docker's: those of the label io.dns11.names, and the wildcards among their
 * aliases, which Docker accepts but compares literally. As with aliases, the containers of a network resolve them, and
 * several containers with one name are all answered.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import { addressBytes } from "../../../base/model/address.ts";
import {
  MISS,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import { type ContainerFact, type EndpointFact, isUserDefined } from "../../facts/fact.ts";
import { aliasWildcards, labelNames } from "../../facts/label-names.ts";
import type { NameSource, NameTraits, NamedContainer } from "../source/name-source.ts";
import { NetworkExtras, WildcardEntry } from "./network-extras.ts";

const LABEL_SOURCE = "label io.dns11.names";

interface NamedExtras {
  readonly network: string;
  readonly extras: NetworkExtras;
}

class VisibleExtras implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.extra;
  readonly #networks: readonly NamedExtras[];

  constructor(networks: readonly NamedExtras[]) {
    this.#networks = networks;
  }

  /** An exact name on any network comes before wildcards, of which the longest wins. */
  find(name: QuestionName, search: NameSearch): number {
    if (!search.behaviour.answersExtraNames) return MISS;
    for (const { network, extras } of this.#networks) {
      const entry = extras.findExact(name);
      if (entry === undefined) continue;
      search.trace?.record("names", `a name from the label io.dns11.names of a container on network "${network}"`);
      return search.found(entry, true);
    }
    let [longest, where]: [WildcardEntry | undefined, string] = [undefined, ""];
    for (const { network, extras } of this.#networks) {
      const entry = extras.findWildcard(name);
      if (entry !== undefined && entry.labels > (longest?.labels ?? 0)) [longest, where] = [entry, network];
    }
    if (longest === undefined) return MISS;
    search.trace?.record("names", `below the wildcard "${longest.text}" of a container on network "${where}"`);
    return search.found(longest, true);
  }

  *list(): Iterable<OwnName> {
    for (const { network, extras } of this.#networks) {
      for (const [name, entry] of extras.list()) {
        const { v4, v6, holders } = entry;
        yield { name, source: entry instanceof WildcardEntry ? "wildcard" : LABEL_SOURCE, network, holders, v4, v6 };
      }
    }
  }

  /** An address has the name that Docker gives it. */
  pointer(): undefined {
    return undefined;
  }
}

export class ExtraNames implements NameSource {
  readonly #networks = new Map<string, NetworkExtras>();

  /** Puts a container's names on its current networks and removes them from those that it has left. */
  join({ fact, before, labels, traits }: NamedContainer): void {
    if (before !== undefined) this.leave(before);
    const { names } = labelNames(labels);
    for (const endpoint of fact.endpoints) {
      if (isUserDefined(endpoint.networkName)) this.#put(fact.id, endpoint, names, traits);
    }
  }

  leave({ id, endpoints }: ContainerFact): void {
    for (const { networkId } of endpoints) {
      this.#networks.get(networkId)?.remove(id);
    }
  }

  removeNetwork(id: string): void {
    this.#networks.delete(id);
  }

  /** The networks of a container have their tables from the first container on: names may come later. */
  namesFor({ endpoints }: ContainerFact): VisibleNames {
    const userDefined = endpoints.filter(({ networkName }) => isUserDefined(networkName));
    return new VisibleExtras(
      userDefined
        .toSorted((a, b) => (a.networkName < b.networkName ? -1 : 1))
        .map(({ networkId, networkName: network }) => ({ network, extras: this.#extrasOf(networkId) })),
    );
  }

  #put(id: string, endpoint: EndpointFact, labelled: readonly string[], traits: NameTraits): void {
    const { networkId, networkName, names: aliases, ipv4, ipv6 } = endpoint;
    const names = [...new Set([...labelled, ...aliasWildcards(aliases, networkName).names])];
    const v4 = ipv4 === undefined ? undefined : addressBytes(ipv4);
    const v6 = ipv6 === undefined ? undefined : addressBytes(ipv6);
    if (names.length > 0 && (v4 ?? v6) !== undefined) this.#extrasOf(networkId).put(id, names, { v4, v6, ...traits });
  }

  #extrasOf(networkId: string): NetworkExtras {
    const extras = this.#networks.get(networkId) ?? new NetworkExtras();
    this.#networks.set(networkId, extras);
    return extras;
  }
}
