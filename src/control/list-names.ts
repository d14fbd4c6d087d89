/**
 * ListNames: all names of the containers of this engine, and what one container resolves of them. Whether a name resolves is
 * decided by the same tables that answer queries; the rest is what the engine reports.
 */
import { setImmediate as turn } from "node:timers/promises";

import type { ListedName, NameList, NameOwner } from "../api/name-list.ts";
import { wireLabels } from "../base/dns/name.ts";
import { queryOf } from "../base/dns/query.ts";
import { TYPE } from "../base/dns/record-type.ts";
import { LIMITS } from "../base/limits.ts";
import { addressText } from "../base/model/address.ts";
import { DEFAULT_BEHAVIOUR } from "../base/model/behaviour.ts";
import { FOUND, type NameAddresses, NameSearch } from "../base/model/visible-names.ts";
import type { View } from "../base/model/view.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import { Question } from "../query/wire/question.ts";
import type { KnownContainer, KnownEndpoint } from "./causes/known-container.ts";
import type { ComposeFilter } from "./compose-filter.ts";
import { namespaceOwner } from "./find-container.ts";
import { containerRef } from "./lookup.ts";
import type { ControlPorts } from "./ports.ts";
import { Situations } from "./situations.ts";

/** One container's claim to a name. */
interface Holder {
  readonly container: KnownContainer;
  /** undefined for a container on no network with names. */
  readonly endpoint: KnownEndpoint | undefined;
}

/** Docker makes so much of the ID a name. */
const SHORT_ID_LENGTH = 12;
/** Names that are looked at before pending queries run. */
const NAMES_A_TURN = 500;

export async function listNames(
  ports: ControlPorts,
  fact: ContainerFact | undefined,
  filter: ComposeFilter | undefined,
): Promise<NameList> {
  const { known } = await Situations.open(ports);
  const isWanted = ({ compose }: KnownContainer): boolean =>
    filter === undefined || filter.acceptsPlace({ project: null, service: null, ...compose });
  const wanted = new Set(known.all.filter((each) => isWanted(each)).map(({ id }) => id));
  const byName = holdersByName(known.all);
  const { facts } = ports.containers;
  const owner = fact === undefined ? undefined : namespaceOwner(facts, fact);
  const view = owner === undefined ? undefined : ports.containers.viewOf(owner);
  const places = view?.names.flatMap((source) => source.places) ?? networksOf(known.all);
  const resolver = view === undefined ? undefined : new NameResolver(view, places, known.all);
  for (const alias of linkAliases(owner)) byName.set(alias, byName.get(alias) ?? []);
  const names: ListedName[] = [];
  let omitted = 0;
  let looked = 0;
  for (const [name, holders] of [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (++looked % NAMES_A_TURN === 0) await turn();
    if (holders.length === 0 ? filter !== undefined : !holders.some(({ container }) => isWanted(container))) continue;
    for (const listed of resolver === undefined
      ? byNetwork(
          name,
          holders.filter(({ container }) => isWanted(container)),
        )
      : resolver.list(name, holders)) {
      if (names.length < LIMITS.namesListed) names.push(listed);
      else omitted++;
    }
  }
  for (const listed of resolver?.listOwn() ?? []) {
    if (++looked % NAMES_A_TURN === 0) await turn();
    if (filter !== undefined && !listed.owners.some(({ containerId }) => wanted.has(containerId))) continue;
    if (names.length < LIMITS.namesListed) names.push(listed);
    else omitted++;
  }
  const container = fact === undefined || owner === undefined ? null : containerRef(fact, owner);
  return { container, networks: places, names, omitted };
}

/** Looks names up as a container's queries do. */
class NameResolver {
  readonly #view: View;
  readonly #networks: ReadonlySet<string>;
  readonly #all: readonly KnownContainer[];
  readonly #question = new Question();
  readonly #search = new NameSearch(DEFAULT_BEHAVIOUR);

  /** `networks` are those of the container. */
  constructor(view: View, networks: readonly string[], all: readonly KnownContainer[]) {
    this.#view = view;
    this.#networks = new Set(networks);
    this.#all = all;
  }

  list(name: string, holders: readonly Holder[]): ListedName[] {
    const addresses = this.#addressesOf(name);
    if (addresses === undefined) {
      return byNetwork(name, holders).map((listed) => (listed.state === "resolves" ? elsewhere(listed) : listed));
    }
    const named = this.#with(addresses, holders);
    // An alias of a link is no name of the container that it leads to.
    const found = named.length > 0 ? named : this.#with(addresses, this.#all.flatMap(holdersOf));
    const network = found[0]?.endpoint?.networkName ?? null;
    return [{ ...listedName(name, network, found), state: "resolves", addresses }];
  }

  /** What sources have beside the names of networks. */
  *listOwn(): Iterable<ListedName> {
    const byId = new Map(this.#all.map((each) => [each.id, each]));
    for (const source of this.#view.names) {
      for (const { name, source: by, holders, ...packed } of source.list?.() ?? []) {
        const addresses = addressTexts(packed);
        const all = holders.flatMap((id) => byId.get(id) ?? []);
        const has = ({ endpoint }: Holder): boolean =>
          endpoint !== undefined && addressesOf(endpoint).some((each) => addresses.includes(each));
        const found = all.flatMap((each) => holdersOf(each).filter(has).slice(0, 1));
        const owners = addresses.length > 0 ? found : all.map((container) => ({ container, endpoint: undefined }));
        yield { ...listedName(name, null, owners), state: "resolves", addresses, source: by };
      }
    }
  }

  /** Those that have one of the addresses on a network of the container. */
  #with(addresses: readonly string[], holders: readonly Holder[]): Holder[] {
    return holders.filter(
      ({ endpoint, container }) =>
        container.ended === undefined &&
        endpoint !== undefined &&
        this.#networks.has(endpoint.networkName) &&
        addressesOf(endpoint).some((each) => addresses.includes(each)),
    );
  }

  /** undefined if the name does not resolve. */
  #addressesOf(name: string): string[] | undefined {
    const labels = wireLabels(name);
    if (labels === undefined) return undefined;
    const query = queryOf({ labels, type: TYPE.A, id: 0 });
    if (this.#question.read(query, 0, query.length) !== "answer") return undefined;
    for (const source of this.#view.names) {
      const result = source.find(this.#question, this.#search);
      if (result === FOUND) return addressTexts(this.#search.addresses);
    }
    return undefined;
  }
}

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

function elsewhere(listed: ListedName): ListedName {
  return { ...listed, state: "other-network" };
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

/** A container without a network with names would have its own name there. */
function holdersByName(all: readonly KnownContainer[]): Map<string, Holder[]> {
  const byName = new Map<string, Holder[]>();
  const add = (name: string, holder: Holder): void => {
    const others = byName.get(name);
    if (others === undefined) byName.set(name, [holder]);
    else others.push(holder);
  };
  for (const container of all) {
    if (container.endpoints.length === 0) add(container.name.toLowerCase(), { container, endpoint: undefined });
    for (const endpoint of container.endpoints) {
      for (const name of new Set(endpoint.names)) add(name, { container, endpoint });
    }
  }
  return byName;
}

function networksOf(all: readonly KnownContainer[]): string[] {
  return [...new Set(all.flatMap(({ endpoints }) => endpoints.map(({ networkName }) => networkName)))].toSorted();
}

/** As Docker reads `target:alias`, or `target` alone; of a path, the last part. */
function linkAliases(owner: ContainerFact | undefined): string[] {
  const links = owner?.endpoints.flatMap(({ links: texts }) => texts) ?? [];
  return links.map((text) => (text.split(":").at(-1) ?? text).split("/").at(-1)?.toLowerCase() ?? "").filter(Boolean);
}

function addressesOf({ ipv4, ipv6 }: KnownEndpoint): string[] {
  return [ipv4, ipv6].filter((each) => each !== undefined);
}

function addressTexts({ v4, v6 }: NameAddresses): string[] {
  const texts: string[] = [];
  for (let at = 0; at < v4.length; at += 4) texts.push(addressText(v4.subarray(at, at + 4)));
  for (let at = 0; at < v6.length; at += 16) texts.push(addressText(v6.subarray(at, at + 16)));
  return texts;
}
