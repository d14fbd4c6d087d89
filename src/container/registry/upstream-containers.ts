/**
 * UpstreamContainers: the containers that are upstream servers of others, found by name among the running ones. A container
 * is queried from inside the asking container if they share a network, because that is the way its own packets take; from
 * the host otherwise, if the host is on that network itself.
 *
 * No query may come back to a container through those that it was sent to: every chain of such servers is followed from
 * the container that asks, for each domain that is routed on the way. All of a cycle is unused, whoever it begins with, and
 * the next route applies: a server needs servers.
 */
import { LIMITS } from "../../base/limits.ts";
import { type RouteRules, type ContainerServer, isContainerServer } from "../../base/model/server-text.ts";
import type { MissingContainerSetting } from "../../base/model/upstream-policy.ts";
import type { Server } from "../../base/model/view.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../facts/fact.ts";
import { type FindContainer, type NotFound, type RouteLayer, longestMatch, selectRoutes } from "./routes.ts";

interface UpstreamContainersParts {
  readonly networkOf: (id: string) => NetworkFact | undefined;
  /** The DNS servers of the cluster that a container is a node of; undefined if it is none, or not yet. */
  readonly clusterDnsOf: (fact: ContainerFact) => string | undefined;
  /** All layers of a container's routes. */
  readonly layersOf: (fact: ContainerFact) => readonly RouteLayer[];
}

type Found = { readonly fact: ContainerFact; readonly server: Server } | NotFound | "itself" | "later";

/** The containers that each route of a container leads to. */
type Edges = ReadonlyMap<string, readonly ContainerFact[]>;

const NO_EDGES: Edges = new Map();
const LAST = { servers: [], isLocal: false, by: undefined, missing: [] };

export class UpstreamContainers {
  readonly #parts: UpstreamContainersParts;
  readonly #byName = new Map<string, ContainerFact>();
  /** The containers that the settings name, and those that each container's label names. */
  #named: ReadonlySet<string> = new Set();
  readonly #namedBy = new Map<string, readonly string[]>();
  #fallsBack = false;
  /** Before all containers are known, one that is not is no reason for queries to fail. */
  #isComplete = true;

  constructor(parts: UpstreamContainersParts) {
    this.#parts = parts;
  }

  setRules({ everyone, networks }: RouteRules): void {
    this.#named = new Set([everyone, ...networks.values()].flatMap(namesIn));
  }

  setMissing(setting: MissingContainerSetting): void {
    this.#fallsBack = setting === "fallback";
  }

  /** Returns whether views change, once they are made again. */
  setComplete(isComplete: boolean): boolean {
    this.#isComplete = isComplete;
    return this.#named.size > 0 || this.#namedBy.size > 0;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  get fallsBack(): boolean {
    return this.#fallsBack;
  }

  /** Takes a container with the routes of its labels; returns whether other containers' views change. */
  put(fact: ContainerFact, labelRoutes: RouteLayer, before: ContainerFact | undefined): boolean {
    const named = namesIn(labelRoutes);
    const isSame =
      before !== undefined && placeOf(before) === placeOf(fact) && isSameList(this.#namedBy.get(fact.id) ?? [], named);
    this.#forget(before);
    this.#byName.set(fact.name, fact);
    if (named.length > 0) this.#namedBy.set(fact.id, named);
    return !isSame && (this.#isNamed(fact.name) || (before !== undefined && this.#isNamed(before.name)));
  }

  /** Returns whether other containers' views change. */
  remove(fact: ContainerFact): boolean {
    this.#forget(fact);
    return this.#isNamed(fact.name);
  }

  /** Makes the finder for the routes of one container. */
  finderFor(asker: ContainerFact): FindContainer {
    const edges = new Map<string, Edges>();
    return (server, domain) => {
      const found = this.#find(asker, server);
      if (typeof found === "string" || "reason" in found) return found;
      const way = this.#wayBack(asker, found.fact, domain, edges);
      if (way === undefined) return found.server;
      const reason = `queries would come back: ${way.join(" -> ")}; give one of these containers another server`;
      return { reason, isPassedOver: true };
    };
  }

  #isNamed(name: string): boolean {
    return this.#named.has(name) || [...this.#namedBy.values()].some((names) => names.includes(name));
  }

  #forget(fact: ContainerFact | undefined): void {
    if (fact === undefined) return;
    // Another container may have taken the name already.
    if (this.#byName.get(fact.name)?.id === fact.id) this.#byName.delete(fact.name);
    this.#namedBy.delete(fact.id);
  }

  /** For the host, whose own way to a node is from inside it, too. */
  findNode(server: ContainerServer): ReturnType<FindContainer> {
    const found = this.#find(undefined, server);
    return typeof found === "string" || "reason" in found ? found : found.server;
  }

  #find(asker: ContainerFact | undefined, server: ContainerServer): Found {
    const { target, network, port, isShared, isNode } = server;
    const fact = this.#byName.get(target);
    if (fact === undefined) {
      if (!this.#isComplete) return "later";
      return { reason: `no running container is named "${target}"; start it, or name another server` };
    }
    if (fact.id === asker?.id) return "itself";
    if (isNode === true) return this.#inNode(fact, port);
    if (asker === undefined) return { reason: "the host queries no containers" };
    const place = this.#placeFor(asker, fact, network, isShared === true);
    if (typeof place === "string") return { reason: place };
    const { from, endpoint } = place;
    const container = { name: target, network: endpoint.networkName, startedAt: fact.startedAt };
    return { fact, server: { from, address: addressOf(endpoint) ?? "", port, container } };
  }

  #inNode(fact: ContainerFact, port: number): Found {
    const { name, startedAt } = fact;
    const address = this.#parts.clusterDnsOf(fact);
    if (address === undefined) {
      return {
        reason: `container "${name}" has no clusterDNS in /var/lib/kubelet/config.yaml; name a node of a cluster`,
      };
    }
    return { fact, server: { from: "node", address, port, container: { name, network: "", startedAt } } };
  }

  /** Where to query it, or why it cannot be queried. */
  #placeFor(
    asker: ContainerFact,
    { name, endpoints }: ContainerFact,
    network: string | undefined,
    isShared: boolean,
  ): { readonly from: "container" | "host"; readonly endpoint: EndpointFact } | string {
    const all = endpoints.filter((each) => addressOf(each) !== undefined);
    if (all.length === 0) return `container "${name}" has no address of its own; connect it to a network`;
    const candidates = network === undefined ? all : all.filter(({ networkName }) => networkName === network);
    if (candidates.length === 0) {
      const joined = all.map(({ networkName }) => networkName).join(", ");
      return `container "${name}" is not on network "${network}"; use one of ${joined}`;
    }
    const own = new Set(asker.endpoints.map(({ networkId }) => networkId));
    const shared = candidates.find(({ networkId }) => own.has(networkId));
    if (shared !== undefined) return { from: "container", endpoint: shared };
    const connect = `connect ${asker.name} to its network`;
    if (isShared) {
      return `container "${name}" is on no network of this container, and a label reaches no other; ${connect}, or name it in the settings`;
    }
    const reachable = candidates.find(({ networkId }) => isOfHost(this.#parts.networkOf(networkId)));
    if (reachable !== undefined) return { from: "host", endpoint: reachable };
    return `container "${name}" is on no network of this container, and on none that the host reaches; ${connect}`;
  }

  /** The names of the containers from `asker` to `asker` again, for names below `domain`; undefined if there is no such way. */
  #wayBack(
    asker: ContainerFact,
    first: ContainerFact,
    domain: string,
    edges: Map<string, Edges>,
  ): readonly string[] | undefined {
    const edgesOf = (fact: ContainerFact): Edges => {
      const known = edges.get(fact.id);
      if (known !== undefined) return known;
      // The settings that it shares with others are read once for each view.
      const found = edges.size < LIMITS.upstreamChain ? this.#edgesOf(fact) : NO_EDGES;
      edges.set(fact.id, found);
      return found;
    };
    const reached = new Set([asker, first]);
    for (const fact of reached) {
      for (const [, next] of edgesOf(fact)) for (const each of next) if (each.id !== asker.id) reached.add(each);
      if (reached.size > LIMITS.upstreamChain) {
        return [asker.name, first.name, `more than ${LIMITS.upstreamChain} containers`];
      }
    }
    const own = edgesOf(asker);
    const domains = new Set([...reached].flatMap((fact) => [...edgesOf(fact).keys()]));
    for (const each of domains) {
      if (longestMatch(own, each) !== domain) continue;
      const nextOf = (fact: ContainerFact): readonly ContainerFact[] => {
        const routes = edgesOf(fact);
        return routes.get(longestMatch(routes, each)) ?? [];
      };
      const way = wayTo(asker, first, nextOf);
      if (way !== undefined) return [asker.name, ...way];
    }
    return undefined;
  }

  /** Every domain that the container routes, so that a domain without containers ends a chain. */
  #edgesOf(fact: ContainerFact): Edges {
    const found = new Map<Server, ContainerFact>();
    const find: FindContainer = (server) => {
      const each = this.#find(fact, server);
      if (typeof each === "string" || "reason" in each) return each;
      found.set(each.server, each.fact);
      return each.server;
    };
    const routes = selectRoutes(this.#parts.layersOf(fact), { find, fallsBack: this.#fallsBack }, LAST);
    if (found.size === 0) return NO_EDGES;
    return new Map(
      [...routes].map(([domain, { servers }]) => [
        domain,
        servers.flatMap((server) => (server === "host" ? [] : (found.get(server) ?? []))),
      ]),
    );
  }
}

function wayTo(
  end: ContainerFact,
  start: ContainerFact,
  nextOf: (fact: ContainerFact) => readonly ContainerFact[],
): readonly string[] | undefined {
  const ways = new Map([[start, [start.name]]]);
  for (const [fact, way] of ways) {
    for (const next of nextOf(fact)) {
      if (next.id === end.id) return [...way, next.name];
      if (!ways.has(next)) ways.set(next, [...way, next.name]);
    }
  }
  return undefined;
}

function namesIn(routes: RouteLayer): string[] {
  return routes.flatMap(({ servers }) => servers.filter(isContainerServer).map(({ target }) => target));
}

/** What others see of a container, as text. */
function placeOf({ name, startedAt, endpoints }: ContainerFact): string {
  return JSON.stringify([name, startedAt, endpoints.map(({ networkId, ipv4, ipv6 }) => [networkId, ipv4, ipv6])]);
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, at) => each === b[at]);
}

function addressOf({ ipv4, ipv6 }: EndpointFact): string | undefined {
  return ipv4 ?? ipv6;
}

/** The host has an address on a bridge of its own. An internal network is for its containers alone. */
function isOfHost(network: NetworkFact | undefined): boolean {
  return network?.driver === "bridge" && !network.isInternal;
}
