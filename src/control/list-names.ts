/**
 * ListNames: all names of the containers of this engine, and what one container resolves of them. Whether a name resolves is
 * decided by the same tables that answer queries; the rest is what the engine reports.
 */
import { setImmediate as turn } from "node:timers/promises";

import type { ListedName, NameList } from "../api/name-list.ts";
import { LIMITS } from "../base/limits.ts";
import type { OwnName } from "../base/model/visible-names.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import type { KnownContainer } from "./causes/known-container.ts";
import type { ComposeFilter } from "./compose-filter.ts";
import { namespaceOwner } from "./find-container.ts";
import { containerRef } from "./lookup.ts";
import { type Holder, byNetwork } from "./name-holders.ts";
import { NameResolver, addressTexts } from "./name-resolver.ts";
import type { ControlPorts } from "./ports.ts";
import { Situations } from "./situations.ts";

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
  const { facts } = ports.containers;
  const owner = fact === undefined ? undefined : namespaceOwner(facts, fact);
  // On the host itself no name of a network exists as it is: its sources list theirs.
  const byName = owner?.networkMode === "host" ? new Map<string, Holder[]>() : holdersByName(known.all);
  const view = owner === undefined ? undefined : ports.containers.viewOf(owner);
  const places = view?.names.flatMap((source) => source.places) ?? networksOf(known.all);
  const resolver =
    view === undefined ? undefined : new NameResolver(view, places, known.all, ports.resolver().behaviour);
  for (const alias of linkAliases(owner)) byName.set(alias, byName.get(alias) ?? []);
  const names: ListedName[] = [];
  let omitted = 0;
  let looked = 0;
  for (const [name, holders] of [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (++looked % NAMES_A_TURN === 0) await turn();
    if (resolver?.isWildcard(name) === true) continue;
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
    if (listed === undefined) continue;
    if (filter !== undefined && !listed.owners.some(({ containerId }) => wanted.has(containerId))) continue;
    if (names.length < LIMITS.namesListed) names.push(listed);
    else omitted++;
  }
  // Of all names, those of the swarm that no container of this engine has.
  for (const own of view === undefined && filter === undefined ? (ports.containers.swarm?.names() ?? []) : []) {
    if (++looked % NAMES_A_TURN === 0) await turn();
    const isListed = (byName.get(own.name) ?? []).some(({ endpoint }) => endpoint?.networkName === own.network);
    if (isListed) continue;
    if (names.length < LIMITS.namesListed) names.push(swarmName(own));
    else omitted++;
  }
  const container = fact === undefined || owner === undefined ? null : containerRef(fact, owner);
  const sorted = names.toSorted((a, b) => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1));
  return { container, networks: places, names: sorted, omitted };
}

function swarmName({ name, network, source, records = [], ...found }: OwnName): ListedName {
  const addresses = addressTexts(found);
  return { name, network: network ?? null, source, records, state: "resolves", addresses, owners: [], isId: false };
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
