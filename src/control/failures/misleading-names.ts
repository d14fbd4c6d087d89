/**
 * MisleadingNames: names that resolve, but not to what their clients need. No query fails, so they are in no failure table:
 * they follow from what is known about containers, and from who has got which answers lately.
 */
import type { MisleadingName } from "../../api/failures.ts";
import { causesOf } from "../causes/causes.ts";
import { searchShadowCause } from "../causes/client-causes.ts";
import { ambiguity, moveCause, pausedCause } from "../causes/container-causes.ts";
import type { KnownContainer, KnownEndpoint } from "../causes/known-container.ts";
import { lostAliasCause, networksWithout, othersWithAlias, givenHostCause } from "../causes/lost-aliases.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import type { ControlPorts } from "../situation/ports.ts";
import type { Situations } from "../situation/situations.ts";

type Ports = Pick<ControlPorts, "containers" | "inside">;

/** An answer that a client got earlier does not count. */
const RECENT_MS = 300_000;
/** Entries of a container that are looked at. */
const GIVEN_MAX = 64;

/** Finds them for the clients that are wanted. */
export async function misleadingNames(
  ports: Ports,
  situations: Situations,
  isWanted: (containerId: string) => boolean,
): Promise<MisleadingName[]> {
  const running = situations.known.all.filter(({ ended }) => ended === undefined);
  const clients = running.filter(({ id }) => isWanted(id));
  return [
    ...ambiguousNames(running, clients, situations.prefersOwnProject),
    ...lostAliases(situations, running, clients),
    ...(await gatherInSlices(eachPaused(situations, running, clients), 1)),
    ...(await gatherInSlices(eachMoved(situations, clients), 1)),
    ...(await shadowedNames(ports, situations, clients)),
    ...(await gatherInSlices(eachGivenHost(ports, situations, clients))),
  ];
}

/** Names of services of several projects on one network. */
function ambiguousNames(
  running: readonly KnownContainer[],
  clients: readonly KnownContainer[],
  prefersOwnProject: boolean,
): MisleadingName[] {
  const byName = new Map<string, KnownContainer[]>();
  for (const container of running) {
    if (container.compose === undefined) continue;
    const name = container.compose.service.toLowerCase();
    for (const { networkName, names } of container.endpoints) {
      if (!names.includes(name)) continue;
      const key = `${networkName}\n${name}`;
      const owners = byName.get(key);
      if (owners === undefined) byName.set(key, [container]);
      else owners.push(container);
    }
  }
  const networks = new Set(clients.flatMap(({ endpoints }) => endpoints.map(({ networkName }) => networkName)));
  return [...byName].flatMap(([key, owners]) => {
    const [network = "", name = ""] = key.split("\n");
    const cause = ambiguity(name, network, owners, prefersOwnProject);
    if (cause === undefined || !networks.has(network)) return [];
    return [{ name, network, containers: owners.map((each) => each.name), clients: [], cause }];
  });
}

/** Names of services that lead to some of their containers only. Where all have lost theirs, it fails. */
function lostAliases(
  { known, former }: Situations,
  running: readonly KnownContainer[],
  clients: readonly KnownContainer[],
): MisleadingName[] {
  const networks = new Set(clients.flatMap(({ endpoints }) => endpoints.map(({ networkName }) => networkName)));
  return running.flatMap((container) =>
    networksWithout(container)
      .filter((network) => networks.has(network) && othersWithAlias(container, network, known).length > 0)
      .map((network) => ({
        name: container.compose?.service ?? "",
        network,
        containers: [container.name],
        clients: [],
        cause: lostAliasCause(container, network, { known, former }),
      })),
  );
}

function* eachPaused(
  { answers }: Situations,
  running: readonly KnownContainer[],
  clients: readonly KnownContainer[],
): Generator<MisleadingName | undefined> {
  for (const container of running.filter(({ isPaused }) => isPaused)) {
    const cause = pausedCause(container);
    const names = yield* queriedNames(container, clients, answers, (atMs) => performance.now() - atMs <= RECENT_MS);
    for (const queried of names) yield { ...queried, containers: [container.name], cause };
  }
}

function* eachMoved(
  { moves, answers }: Situations,
  clients: readonly KnownContainer[],
): Generator<MisleadingName | undefined> {
  for (const move of moves) {
    const agoMs = performance.now() - move.atMs;
    const moved = { id: move.containerId, endpoints: [move] };
    const names = yield* queriedNames(moved, clients, answers, (atMs) => atMs < move.atMs);
    for (const queried of names)
      yield {
        ...queried,
        containers: [move.container],
        cause: moveCause(queried.name, move, queried.clients, agoMs),
      };
  }
}

/** Names that upstream servers answer, although containers have them, also with a domain of the client's search list. */
async function shadowedNames(
  ports: Ports,
  situations: Situations,
  clients: readonly KnownContainer[],
): Promise<MisleadingName[]> {
  return await gatherInSlices(eachShadowed(ports, situations, clients));
}

function* eachShadowed(
  { containers }: Ports,
  situations: Situations,
  clients: readonly KnownContainer[],
): Generator<MisleadingName | undefined> {
  for (const client of clients) {
    yield undefined;
    const fact = containers.facts.get(client.id);
    const upstream = [...situations.answers.of(client.id)].filter(
      ([, { isFromUpstream, atMs }]) => isFromUpstream && performance.now() - atMs <= RECENT_MS,
    );
    if (fact === undefined || upstream.length === 0) continue;
    const search = situations.resolvConfOf(fact, fact)?.search ?? [];
    const networks = new Set(client.endpoints.map(({ networkName }) => networkName));
    for (const [completed] of upstream) {
      const question = { name: completed, typeName: "A", failure: undefined, isFromUpstream: true };
      const [first] = causesOf(situations.of(fact, fact, { ...question, isTruncated: false, isSpecial: false }));
      if (first?.code === "shadowed") {
        yield { name: completed, network: null, containers: [], clients: [client.name], cause: first };
        continue;
      }
      const domain = search.find((each) => completed.endsWith(`.${each.toLowerCase()}`));
      const name = domain === undefined ? "" : completed.slice(0, -domain.length - 1);
      for (const { container, endpoints } of situations.known.places(name)) {
        const network = endpoints.find(({ networkName }) => networks.has(networkName))?.networkName;
        if (network === undefined || container.ended !== undefined) continue;
        const cause = searchShadowCause(client, name, completed);
        yield { name, network, containers: [container.name], clients: [client.name], cause };
        break;
      }
    }
  }
}

/** Names of containers for which a client was given another address. */
function* eachGivenHost(
  { containers, inside }: Ports,
  { known }: Situations,
  clients: readonly KnownContainer[],
): Generator<MisleadingName | undefined> {
  for (const client of clients) {
    yield undefined;
    const fact = containers.facts.get(client.id);
    const networks = new Set(client.endpoints.map(({ networkName }) => networkName));
    for (const { name, address } of fact?.extraHosts.slice(0, GIVEN_MAX) ?? []) {
      const places = known.places(name.toLowerCase()).filter(({ container }) => container.ended === undefined);
      const near = places.flatMap(({ endpoints }) => endpoints.filter((each) => networks.has(each.networkName)));
      const network = near[0]?.networkName;
      if (fact === undefined || network === undefined) continue;
      if (near.some(({ ipv4, ipv6 }) => [ipv4, ipv6].some((own) => own !== undefined && isSameAddress(own, address))))
        continue;
      if ((inside.lookupOrderOf?.(fact).file ?? "first") !== "first") continue;
      const found = {
        name,
        network,
        containers: places.map(({ container }) => container.name),
        clients: [client.name],
      };
      yield { ...found, cause: givenHostCause(client, name, [address]) };
    }
  }
}

interface NamedContainer {
  readonly id: string;
  readonly endpoints: readonly Pick<KnownEndpoint, "networkName" | "names">[];
}

/**
 * Which clients have resolved the names of a container, one client after the other. `isWanted` decides by when a client got its
 * answer.
 */
function* queriedNames(
  { id, endpoints }: NamedContainer,
  clients: readonly KnownContainer[],
  answers: Situations["answers"],
  isWanted: (atMs: number) => boolean,
): Generator<undefined, Pick<MisleadingName, "name" | "network" | "clients">[]> {
  const found = new Map<string, { name: string; network: string; clients: string[] }>();
  for (const { networkName: network, names } of endpoints) {
    for (const client of clients) {
      if (client.id === id || !client.endpoints.some(({ networkName }) => networkName === network)) continue;
      yield undefined;
      const own = answers.of(client.id);
      for (const name of names) {
        const last = own.get(name) ?? own.get(`${name}.${network.toLowerCase()}`);
        if (last === undefined || !isWanted(last.atMs)) continue;
        const entry = found.get(name) ?? { name, network, clients: [] };
        found.set(name, entry);
        if (!entry.clients.includes(client.name)) entry.clients.push(client.name);
      }
    }
  }
  return [...found.values()];
}
