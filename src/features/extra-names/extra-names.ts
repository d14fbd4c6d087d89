/**
 * ExtraNames: names that containers have beside Docker's: those of the label io.dns11.names, and the wildcards among their
 * aliases, which Docker accepts but compares literally. As with aliases, the containers of a network resolve them, and
 * several containers with one name are all answered.
 */
import { LIMITS } from "../../base/limits.ts";
import { shortened } from "../../base/lib/text.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { addressBytes } from "../../base/model/address.ts";
import {
  MISS,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type VisibleNames,
} from "../../base/model/visible-names.ts";
import { presentation, wireLabels } from "../../base/dns/name.ts";
import { WILDCARD, normalName, problemOf } from "../../base/model/extra-name.ts";
import { LabelTable } from "../../base/model/label-table.ts";
import {
  type ContainerFact,
  type EndpointFact,
  type NetworkFact,
  type StoppedFact,
  isUserDefined,
} from "../../container/facts/fact.ts";
import { type Labels, ignoredLabelWarning } from "../../container/facts/labels.ts";
import { apartLast } from "../../container/names/source/gateways.ts";
import {
  NO_NAMES,
  type NameSource,
  type NameTraits,
  type NamedContainer,
  type NetworkName,
} from "../../container/names/source/name-source.ts";
import { SuffixTable } from "../../container/names/source/suffix-table.ts";
import { type EndpointAddresses, NameEntry } from "../../container/names/source/name-entry.ts";
import type { Running } from "../contract.ts";

/** The label with names of a container on all its networks, separated by blanks or commas. */
const NAMES_LABEL = "io.dns11.names";
const LABEL_SOURCE = `label ${NAMES_LABEL}`;

/** Docker has no such names. */
export function open(): Running {
  return {
    makeNames: ({ isStrict }, { networkOf }) => ({
      place: "extra-names",
      source: isStrict ? NO_NAMES : new ExtraNames(networkOf),
    }),
    labelWarnings: (fact, labels, policy) => [
      labelNames(labels).warning,
      ignoredLabelWarning(NAMES_LABEL, fact, policy),
      ...fact.endpoints.map(({ names, networkName }) => aliasWildcards(names, networkName).warning),
    ],
  };
}

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
  readonly #networkOf: (id: string) => NetworkFact | undefined;

  constructor(networkOf: (id: string) => NetworkFact | undefined) {
    this.#networkOf = networkOf;
  }

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

  namesOf({ networks }: StoppedFact, labels: Labels): readonly NetworkName[] {
    const { names: labelled } = labelNames(labels);
    return networks.flatMap(({ name: network, names: aliases }) =>
      [...labelled, ...aliasWildcards(aliases, network).names].map((name) => ({ name, network })),
    );
  }

  /** The networks of a container have their tables from the first container on: names may come later. */
  namesFor({ endpoints }: ContainerFact): VisibleNames {
    const userDefined = endpoints.filter(({ networkName }) => isUserDefined(networkName));
    const ordered = userDefined.toSorted((a, b) => (a.networkName < b.networkName ? -1 : 1));
    return new VisibleExtras(
      apartLast(ordered, this.#networkOf).map(({ networkId, networkName: network }) => ({
        network,
        extras: this.#extrasOf(networkId),
      })),
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

/** A wildcard's endpoints, and how many labels it has: the longest wins. */
class WildcardEntry extends NameEntry {
  readonly text: string;
  readonly labels: number;

  constructor(text: string) {
    super();
    this.text = text;
    this.labels = text.split(".").length;
  }
}

/** The extra names on one network: names and wildcards to the endpoints that have them. */
class NetworkExtras {
  readonly #exact = new LabelTable<NameEntry>();
  readonly #wildcards = new SuffixTable<WildcardEntry>();
  readonly #names = new Map<string, readonly string[]>();

  findExact({ folded, foldedLength, labelCount, hashOf }: QuestionName): NameEntry | undefined {
    return this.#exact.find(folded, foldedLength, hashOf[labelCount] as number);
  }

  findWildcard(name: QuestionName): WildcardEntry | undefined {
    return this.#wildcards.find(name);
  }

  /** Names, then wildcards, as text. */
  *list(): Iterable<readonly [string, NameEntry]> {
    for (const [key, entry] of this.#exact.entries()) yield [presentation(key, 0, key.length), entry];
    for (const [, entry] of this.#wildcards.entries()) yield [entry.text, entry];
  }

  /** Replaces the names of an endpoint. */
  put(holder: string, names: readonly string[], addresses: EndpointAddresses): void {
    this.remove(holder);
    if (names.length === 0) return;
    this.#names.set(holder, names);
    for (const name of names) this.#entryOf(name)?.put(holder, addresses);
  }

  remove(holder: string): void {
    for (const name of this.#names.get(holder) ?? []) {
      const { labels, isWildcard } = keyOf(name);
      if (labels === undefined) continue;
      const table = isWildcard ? this.#wildcards : this.#exact;
      const entry = table.get(labels);
      entry?.remove(holder);
      if (entry?.hasHolders === false) table.delete(labels);
    }
    this.#names.delete(holder);
  }

  #entryOf(name: string): NameEntry | undefined {
    const { labels, isWildcard } = keyOf(name);
    if (labels === undefined) return undefined;
    const known = (isWildcard ? this.#wildcards : this.#exact).get(labels);
    if (known !== undefined) return known;
    if (!isWildcard) {
      const entry = new NameEntry();
      this.#exact.set(labels, entry);
      return entry;
    }
    const entry = new WildcardEntry(name);
    this.#wildcards.set(labels, entry);
    return entry;
  }
}

function keyOf(name: string): { readonly labels: Uint8Array | undefined; readonly isWildcard: boolean } {
  const isWildcard = name.startsWith(WILDCARD);
  return { labels: wireLabels(isWildcard ? name.slice(WILDCARD.length) : name), isWildcard };
}

interface ReadNames {
  /** Normal names; wildcards begin with "*.". */
  readonly names: readonly string[];
  readonly warning?: string;
}

/** The names of the label. Invalid ones are ignored, and the warning quotes the first of them. */
export function labelNames(labels: Labels): ReadNames {
  const text = labels[NAMES_LABEL] ?? "";
  const all = text
    .slice(0, LIMITS.labelChars)
    .split(/[\s,]+/)
    .filter((word) => word !== "");
  const isTooLong = text.length > LIMITS.labelChars;
  // The last name of a label that is too long may be cut.
  return readNames(isTooLong ? all.slice(0, -1) : all, `label ${NAMES_LABEL}`, isTooLong);
}

/** The aliases of an endpoint that are wildcards. */
export function aliasWildcards(aliases: readonly string[], network: string): ReadNames {
  return readNames(
    aliases.filter((alias) => alias === "*" || alias.startsWith(WILDCARD)),
    `alias on network "${network}"`,
    false,
  );
}

function readNames(texts: readonly string[], where: string, isTooLong: boolean): ReadNames {
  const distinct = [...new Set(texts.map((text) => normalName(text)))];
  const valid = distinct.filter((name) => problemOf(name) === undefined);
  const bad = distinct.find((name) => problemOf(name) !== undefined);
  const isTooMany = isTooLong || valid.length > LIMITS.labelNames;
  const warnings = [
    ...(bad === undefined
      ? []
      : [`invalid ${where}: "${shortened(bad, LIMITS.labelCharsShown)}" is ignored: ${problemOf(bad) ?? ""}`]),
    ...(isTooMany
      ? [`${where} has too many names: the limit is ${LIMITS.labelNames} names in ${LIMITS.labelChars} characters`]
      : []),
  ];
  const names = valid.slice(0, LIMITS.labelNames);
  return warnings.length === 0 ? { names } : { names, warning: warnings.join("; ") };
}
