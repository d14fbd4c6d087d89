/**
 * NameResolver: looks names up as a container's queries do, for a list of them: what each leads to, from which source, and
 * what comes before it.
 */
import type { ListedName, NameOwner, NameList } from "../../api/names.ts";
import { wireLabels } from "../../base/dns/name.ts";
import { addressText } from "../../base/model/address.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { LOCAL_SOURCE, LOCAL_SOURCES } from "../../base/model/local-source.ts";
import { StoredName } from "../../base/model/label-table.ts";
import {
  ONLY_DOCKER,
  MISS,
  type NameAddresses,
  type NameRecords,
  NameSearch,
  type OwnName,
  type VisibleNames,
} from "../../base/model/visible-names.ts";
import type { View } from "../../base/model/view.ts";
import type { KnownContainer, KnownEndpoint } from "../causes/known-container.ts";
import { inSlices } from "../../base/lib/slices.ts";
import { LIMITS } from "../../base/limits.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { ComposeFilter } from "../situation/address-owners.ts";
import { containerRef, namespaceOwner } from "../situation/find-container.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { Situations } from "../situation/situations.ts";

/** A name of a source, as text, and whose it is. */
interface Claim {
  readonly text: string;
  readonly holders: ReadonlySet<string>;
}

const WILDCARD = "*.";
/** Stands for any name below a wildcard. */
const ANY_LABEL = "any-name-below";

class NameResolver {
  readonly #sources: readonly VisibleNames[];
  readonly #networks: ReadonlySet<string>;
  readonly #all: readonly KnownContainer[];
  readonly #byId: ReadonlyMap<string, KnownContainer>;
  readonly #search: NameSearch;
  /** What was listed so far, by source and name. */
  readonly #claims = new Map<string, Claim>();
  /** The same for names that have records of their own. */
  readonly #entries = new Map<NameRecords, Pick<OwnName, "name" | "source">>();

  /** `networks` are those of the container. */
  constructor({ names }: View, networks: readonly string[], all: readonly KnownContainer[], behaviour: Behaviour) {
    this.#sources = names;
    this.#networks = new Set(networks);
    this.#all = all;
    this.#byId = new Map(all.map((each) => [each.id, each]));
    this.#search = new NameSearch(behaviour);
  }

  /** Whether an alias is one that stands for all names below it; then its source lists it. */
  isWildcard(name: string): boolean {
    return name.startsWith(WILDCARD) && this.#first(probe(name)) !== undefined;
  }

  /** A name that containers have on networks. */
  list(name: string, holders: readonly Holder[]): ListedName[] {
    const index = this.#first(name);
    const source = index === undefined ? undefined : this.#sources[index];
    if (index !== undefined && source !== undefined && source.places.length > 0)
      return this.#onNetworks(index, name, holders);
    const addresses = addressTexts(this.#search.addresses);
    return byNetwork(name, holders).map((listed) => {
      if (listed.state === "resolves") return { ...listed, state: "other-network" };
      const isOwn = listed.state === "not-running" && this.#networks.has(listed.network ?? "");
      if (!isOwn || source === undefined) return listed;
      const { title } = LOCAL_SOURCES[source.kind];
      return source.kind === LOCAL_SOURCE.stopped
        ? { ...listed, source: title, addresses }
        : { ...listed, state: "shadowed", shadowedBy: title };
    });
  }

  /** What sources have beside the names of the container's networks; undefined for a name that is not listed. */
  *listOwn(): Iterable<ListedName | undefined> {
    for (const [index, source] of this.#sources.entries())
      for (const own of source.list?.() ?? []) yield this.#own(index, own);
  }

  #onNetworks(index: number, name: string, holders: readonly Holder[]): ListedName[] {
    const addresses = addressTexts(this.#search.addresses);
    const named = this.#with(addresses, holders);
    // An alias of a link is no name of the container that it leads to.
    const isLink = named.length === 0;
    const found = isLink ? this.#with(addresses, this.#all.flatMap(holdersOf)) : named;
    const network = found[0]?.endpoint?.networkName ?? null;
    const by = isLink ? { source: "link" } : {};
    const first: ListedName = { ...listedName(name, network, found), ...by, state: "resolves", addresses };
    const ids = new Set(first.owners.map(({ containerId }) => containerId));
    this.#claims.set(claimKey(index, name), { text: isLink ? "link" : `network ${network ?? ""}`, holders: ids });
    const others = holders.filter(
      ({ container, endpoint }) =>
        container.ended === undefined && this.#networks.has(endpoint?.networkName ?? "") && !ids.has(container.id),
    );
    const shadowed = byNetwork(name, others).map((listed): ListedName => {
      const shadowedBy = isLink ? "link" : shadowOn(listed, first);
      return { ...listed, state: "shadowed", shadowedBy };
    });
    return [first, ...shadowed];
  }

  #own(index: number, own: OwnName): ListedName | undefined {
    const { name, source, network = null, records = [], holders } = own;
    // A switch may turn the source off.
    if (this.#first(probe(name), index, index) === undefined) return undefined;
    const winner = this.#first(probe(name), index) ?? index;
    const key = claimKey(index, name);
    const same = this.#claims.get(key);
    // The container has the name on another network as well.
    if (same !== undefined && holders.length > 0 && holders.every((id) => same.holders.has(id))) return undefined;
    const shadowedBy = winner === index ? (this.#shadowWithin(own) ?? same?.text) : this.#claimText(winner, name);
    const text = network === null ? source : `${source} on ${network}`;
    if (same === undefined) this.#claims.set(key, { text, holders: new Set(holders) });
    const addresses = addressTexts(own);
    // NAME.NETWORK of an ID is an ID as well; names of zones are chosen.
    const [label = name] = network === null ? [name] : name.split(".", 1);
    return {
      ...listedName(label, network, this.#owners(holders, addresses)),
      name,
      state: shadowedBy === undefined ? "resolves" : "shadowed",
      addresses,
      source,
      ...(shadowedBy === undefined ? {} : { shadowedBy }),
      ...(records.length === 0 ? {} : { records }),
    };
  }

  /** What comes first in its own source, which has just been searched: a wildcard for fewer containers, for example. */
  #shadowWithin({ name, source, entry }: OwnName): string | undefined {
    if (entry === undefined) return undefined;
    this.#entries.set(entry, { name, source });
    const { records } = this.#search;
    const first = records === undefined || records === entry ? undefined : this.#entries.get(records);
    return first && (first.name === name ? first.source : `${first.name}, ${first.source}`);
  }

  #owners(ids: readonly string[], addresses: readonly string[]): Holder[] {
    const all = ids.flatMap((id) => this.#byId.get(id) ?? []);
    if (addresses.length === 0) return all.map((container) => ({ container, endpoint: undefined }));
    const has = ({ endpoint }: Holder): boolean =>
      endpoint !== undefined && addressesOf(endpoint).some((each) => addresses.includes(each));
    return all.flatMap((each) => holdersOf(each).filter(has).slice(0, 1));
  }

  #claimText(index: number, name: string): string {
    const { kind } = this.#sources[index] ?? {};
    const title = kind === undefined ? "another source" : LOCAL_SOURCES[kind].title;
    return this.#claims.get(claimKey(index, name))?.text ?? title;
  }

  /** Finds those that have one of the addresses on a network of the container. */
  #with(addresses: readonly string[], holders: readonly Holder[]): Holder[] {
    const wanted = new Set(addresses);
    return holders.filter(
      ({ endpoint, container }) =>
        container.ended === undefined &&
        endpoint !== undefined &&
        this.#networks.has(endpoint.networkName) &&
        addressesOf(endpoint).some((each) => wanted.has(each)),
    );
  }

  /** The first source of a range that ends the search for a name; undefined: none. */
  #first(name: string, last = this.#sources.length - 1, from = 0): number | undefined {
    const labels = wireLabels(name);
    if (labels === undefined) return undefined;
    const question = new StoredName(labels);
    this.#search.addresses = NO_ADDRESSES;
    const found = this.#sources.slice(from, last + 1).findIndex((each) => {
      const result = each.find(question, this.#search);
      // What only Docker's resolver knows is listed by its source, and hides nothing that is not there.
      return result === ONLY_DOCKER ? from === last : result !== MISS;
    });
    return found < 0 ? undefined : from + found;
  }
}

const NO_ADDRESSES: NameAddresses = { v4: new Uint8Array(0), v6: new Uint8Array(0) };

/** A name that a wildcard answers; any other name itself. */
function probe(name: string): string {
  return name.startsWith(WILDCARD) ? `${ANY_LABEL}.${name.slice(WILDCARD.length)}` : name;
}

function claimKey(index: number, name: string): string {
  return `${index} ${name}`;
}

/** Why other containers of the container's networks are answered. */
function shadowOn({ network, owners }: ListedName, first: ListedName): string {
  if (network !== first.network) return `network ${first.network ?? ""}`;
  const projects = new Set(first.owners.map(({ project }) => project));
  return owners.some(({ project }) => projects.has(project)) ? "health checks" : "its own project";
}

function addressTexts({ v4, v6 }: NameAddresses): string[] {
  const texts: string[] = [];
  for (let at = 0; at < v4.length; at += 4) texts.push(addressText(v4.subarray(at, at + 4)));
  for (let at = 0; at < v6.length; at += 16) texts.push(addressText(v6.subarray(at, at + 16)));
  return texts;
}

/** One container's claim to a name. */
interface Holder {
  readonly container: KnownContainer;
  /** undefined for a container on no network with names. */
  readonly endpoint: KnownEndpoint | undefined;
}

/** Docker makes so much of the ID a name. */
const SHORT_ID_LENGTH = 12;

function holdersOf(container: KnownContainer): Holder[] {
  return container.endpoints.map((endpoint) => ({ container, endpoint }));
}

/** The name on each network, without regard to who asks. */
function byNetwork(name: string, holders: readonly Holder[]): ListedName[] {
  const networks = new Map<string | null, Holder[]>();
  for (const holder of holders) {
    const network = holder.endpoint?.networkName ?? null;
    networks.set(network, [...(networks.get(network) ?? []), holder]);
  }
  return [...networks].map(([network, all]) => {
    const running = all.filter(({ container }) => container.ended === undefined);
    const state = running.length === 0 ? "not-running" : network === null ? "no-network" : "resolves";
    return { ...listedName(name, network, running.length === 0 ? all : running), state };
  });
}

function listedName(name: string, network: string | null, holders: readonly Holder[]): Omit<ListedName, "state"> {
  const owners = holders.map(ownerOf);
  return {
    name,
    network,
    addresses: [...new Set(owners.flatMap(({ addresses }) => addresses))],
    owners,
    isId:
      owners.length > 0 &&
      name.length === SHORT_ID_LENGTH &&
      owners.every(({ containerId }) => containerId.startsWith(name)),
  };
}

function ownerOf({ container, endpoint }: Holder): NameOwner {
  const { project = null, service = null } = container.compose ?? {};
  const addresses = endpoint === undefined ? [] : addressesOf(endpoint);
  return { container: container.name, containerId: container.id, project, service, addresses };
}

export function addressesOf({ ipv4, ipv6 }: KnownEndpoint): string[] {
  return [ipv4, ipv6].filter((each) => each !== undefined);
}

const ENTRIES = LOCAL_SOURCES[LOCAL_SOURCE.addHost].title;

/**
 * All names of the containers of this engine, and what one container resolves of them. Whether a name resolves is
 * decided by the same tables that answer queries; the rest is what the engine reports.
 */
export async function listNames(
  ports: ControlPorts,
  fact: ContainerFact | undefined,
  filter: ComposeFilter | undefined,
): Promise<NameList> {
  const { known } = await Situations.open(ports);
  const isWanted = ({ compose }: KnownContainer): boolean =>
    filter === undefined || filter.acceptsPlace({ project: null, service: null, ...compose });
  const wanted = new Set(known.all.filter((each) => isWanted(each)).map(({ id }) => id));
  const { facts } = ports.containers;
  const owner = fact === undefined ? undefined : namespaceOwner(facts, fact);
  // On the host itself no name of a network exists as it is: its sources list theirs.
  const byName = owner?.networkMode === "host" ? new Map<string, Holder[]>() : await holdersByName(known.all);
  const view = owner === undefined ? undefined : ports.containers.viewOf(owner);
  const places = view?.names.flatMap((source) => source.places) ?? networksOf(known.all);
  const resolver =
    view === undefined ? undefined : new NameResolver(view, places, known.all, ports.resolver().behaviour);
  for (const alias of linkAliases(owner)) byName.set(alias, byName.get(alias) ?? []);
  const names: ListedName[] = [];
  let omitted = 0;
  const add = (listed: ListedName): void => {
    if (names.length < LIMITS.namesListed) names.push(listed);
    else omitted++;
  };
  const eachName = function* (): Generator<void> {
    for (const name of [...byName.keys()].toSorted()) {
      yield;
      const holders = byName.get(name) ?? [];
      if (resolver?.isWildcard(name) === true) continue;
      if (holders.length === 0 ? filter !== undefined : !holders.some(({ container }) => isWanted(container))) continue;
      const own = holders.filter(({ container }) => isWanted(container));
      for (const listed of resolver?.list(name, holders) ?? byNetwork(name, own)) add(listed);
    }
    for (const listed of resolver?.listOwn() ?? []) {
      yield;
      if (listed === undefined) continue;
      if (filter === undefined || listed.owners.some(({ containerId }) => wanted.has(containerId))) add(listed);
    }
    for (const own of view === undefined && filter === undefined
      ? (ports.containers.elsewhere?.allNames() ?? [])
      : []) {
      yield;
      const others = byName.get(own.name) ?? [];
      if (!others.some(({ endpoint }) => endpoint?.networkName === own.network)) add(nameElsewhere(own));
    }
  };
  await inSlices(eachName());
  const container = fact === undefined || owner === undefined ? null : containerRef(fact, owner);
  const sorted = entriesFirst(names).toSorted((a, b) => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1));
  return { container, networks: places, names: sorted, omitted };
}

/** Programs read /etc/hosts before they query, so its entries come before every name that is answered. */
function entriesFirst(names: readonly ListedName[]): readonly ListedName[] {
  const isEntry = ({ source }: ListedName): boolean => source === ENTRIES;
  const entries = new Set(names.filter(isEntry).map(({ name }) => name));
  const listed = names.map((each): ListedName => {
    if (!entries.has(each.name) || (each.state !== "resolves" && each.state !== "shadowed")) return each;
    const { shadowedBy: _, ...rest } = each;
    return isEntry(each) ? { ...rest, state: "resolves" } : { ...rest, state: "shadowed", shadowedBy: ENTRIES };
  });
  return [...listed.filter(isEntry), ...listed.filter((each) => !isEntry(each))];
}

function nameElsewhere({ name, network, source, records = [], ...found }: OwnName): ListedName {
  const addresses = addressTexts(found);
  return { name, network: network ?? null, source, records, state: "resolves", addresses, owners: [], isId: false };
}

/** A container without a network with names would have its own name there. */
async function holdersByName(all: readonly KnownContainer[]): Promise<Map<string, Holder[]>> {
  const byName = new Map<string, Holder[]>();
  await inSlices(eachHolder(all, byName));
  return byName;
}

function* eachHolder(all: readonly KnownContainer[], byName: Map<string, Holder[]>): Generator<void> {
  const add = (name: string, holder: Holder): void => {
    const others = byName.get(name);
    if (others === undefined) byName.set(name, [holder]);
    else others.push(holder);
  };
  for (const container of all) {
    yield;
    if (container.endpoints.length === 0) add(container.name.toLowerCase(), { container, endpoint: undefined });
    for (const endpoint of container.endpoints) {
      for (const name of new Set(endpoint.names)) add(name, { container, endpoint });
    }
  }
}

function networksOf(all: readonly KnownContainer[]): string[] {
  return [...new Set(all.flatMap(({ endpoints }) => endpoints.map(({ networkName }) => networkName)))].toSorted();
}

/** As Docker reads `target:alias`, or `target` alone; of a path, the last part. */
function linkAliases(owner: ContainerFact | undefined): string[] {
  const links = owner?.endpoints.flatMap(({ links: texts }) => texts) ?? [];
  return links.map((text) => (text.split(":").at(-1) ?? text).split("/").at(-1)?.toLowerCase() ?? "").filter(Boolean);
}
