/**
 * ListNames: all names of the containers of this engine, and what one container resolves of them. Whether a name resolves is
 * decided by the same tables that answer queries; the rest is what the engine reports.
 */
import type { ListedName, NameList } from "../../api/name-list.ts";
import { inSlices } from "../../base/lib/slices.ts";
import { LIMITS } from "../../base/limits.ts";
import type { OwnName } from "../../base/model/visible-names.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { KnownContainer } from "../causes/known-container.ts";
import type { ComposeFilter } from "../situation/compose-filter.ts";
import { containerRef, namespaceOwner } from "../containers/find-container.ts";
import { type Holder, byNetwork } from "./name-holders.ts";
import { NameResolver, addressTexts } from "./name-resolver.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { Situations } from "../situation/situations.ts";

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
    // Of all names, those of the swarm that no container of this engine has.
    for (const own of view === undefined && filter === undefined ? (ports.containers.swarm?.names() ?? []) : []) {
      yield;
      const others = byName.get(own.name) ?? [];
      if (!others.some(({ endpoint }) => endpoint?.networkName === own.network)) add(swarmName(own));
    }
  };
  await inSlices(eachName());
  const container = fact === undefined || owner === undefined ? null : containerRef(fact, owner);
  const sorted = names.toSorted((a, b) => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1));
  return { container, networks: places, names: sorted, omitted };
}

function swarmName({ name, network, source, records = [], ...found }: OwnName): ListedName {
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
