/**
 * Directory: all that is known of containers, kept by applying facts, and what each may know: names from their sources, and
 * who is asked for the rest. A change costs what changed: the names of one container on its networks, and its own view. It
 * is applied in one synchronous step, so a query sees all of it or nothing.
 */
import { LIMITS } from "../../base/limits.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { DockerNetworks } from "../names/docker/networks.ts";
import type { JoinedNetwork } from "../names/docker/search-order.ts";
import { HOST_DOCKER_INTERNAL } from "../names/node-host/node-host.ts";
import { nameSources } from "../names/name-sources.ts";
import type { NodeContext } from "../names/name-source.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../base/model/label-policy.ts";
import { NO_RULES, type RouteRules } from "../../base/model/route-rules.ts";
import type { Server, Upstreams, View } from "../../base/model/view.ts";
import type { ContainerFact, NameserversFact, NetworkFact } from "./fact.ts";
import { DNS_LABEL, labelRoutes } from "./label-routes.ts";
import { type RouteLayer, routesOf, routeLayer } from "./routes.ts";

export interface DirectoryOptions {
  /** Of Docker's list, so many servers are used. */
  readonly serversMax: number;
  /** Our own address: as a server of a container it would ask itself. */
  readonly ownAddress: string;
}

const DNS_PORT = 53;
/** Docker's own resolver behind us. */
const DOCKER_SERVER: Server = { from: "docker", address: "127.0.0.11", port: DNS_PORT };
/** Where the list of servers comes from that nobody put another one for. */
const FALLBACK_ORIGINS: Readonly<Record<NameserversFact["kind"], string>> = {
  listed: "Docker's list for this container",
  host: "the host's resolv.conf, as it is now",
  unknown: "",
};
/** Drivers whose networks lead nowhere, with or without a gateway. */
const DRIVERS_WITHOUT_OUTSIDE = new Set(["null", "host"]);

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #networks = new DockerNetworks();
  readonly #sources = nameSources({ networks: this.#networks });
  readonly #containers = new Map<string, ContainerFact>();
  #host: readonly Server[] = [];
  #rules: RouteRules = NO_RULES;
  #labelPolicy: LabelPolicy = LABEL_DEFAULTS;
  #serversMax: number;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.#serversMax = options.serversMax;
  }

  get containers(): ReadonlyMap<string, ContainerFact> {
    return this.#containers;
  }

  /** The host's own servers, from now on. Views made before do not change. */
  setHost(servers: readonly Server[]): void {
    this.#host = servers;
  }

  /** What settings say about who is asked, from now on. Views made before do not change. */
  setRules(rules: RouteRules): void {
    this.#rules = rules;
  }

  /** What labels may say about who is asked, from now on. Views made before do not change. */
  setLabelPolicy(policy: LabelPolicy): void {
    this.#labelPolicy = policy;
  }

  /** How many servers of Docker's list are used, from now on. */
  setServersMax(serversMax: number): void {
    this.#serversMax = serversMax;
  }

  network(id: string): NetworkFact | undefined {
    return this.#networks.fact(id);
  }

  putNetwork(fact: NetworkFact): void {
    this.#networks.put(fact);
  }

  /** Forgets a network that is gone. Whoever was on it has been told to have left it. */
  removeNetwork(id: string): void {
    this.#networks.remove(id);
  }

  /** Takes a container's facts instead of those that were known. Its networks must be known already. */
  putContainer(fact: ContainerFact): void {
    this.#networks.join(fact, this.#containers.get(fact.id));
    this.#containers.set(fact.id, fact);
  }

  removeContainer(id: string): void {
    const fact = this.#containers.get(id);
    if (fact !== undefined) this.#networks.leave(fact);
    this.#containers.delete(id);
  }

  /** What the namespace of this container may know now. */
  viewOf(fact: ContainerFact, node?: NodeContext): View {
    const names = this.#sources.flatMap((source) => source.namesFor(fact, node) ?? []);
    const upstreams = this.#upstreams(fact, this.#networks.joinedBy(fact), node);
    return node === undefined ? { names, upstreams } : { names, upstreams, budgetMs: LIMITS.nodeBudgetMs };
  }

  #upstreams(
    { labels, imageLabels, nameservers }: ContainerFact,
    joined: readonly JoinedNetwork[],
    node: NodeContext | undefined,
  ): Upstreams {
    const { everyone, networks, isNdotsSet } = this.#rules;
    const { trustsImages, servers: place } = this.#labelPolicy;
    const reaches = joined.some(reachesOutside);
    // Some drivers lead outside by ways that no interface tells; only Docker knows then whether the host's servers serve.
    const isUnclear = !reaches && joined.some(mayReachOutside);
    const ownAddresses = [this.#options.ownAddress, ...(node?.ownAddresses ?? [])];
    // Where KIND's entrypoint has been, Docker's own resolver answers at another address.
    const doors = [
      DOCKER_SERVER,
      ...(node?.ownAddresses ?? []).map((address): Server => ({ ...DOCKER_SERVER, address })),
    ];
    const listed = isUnclear ? doors : this.#listed(nameservers, doors, ownAddresses);
    const isOwn = nameservers.kind === "listed" && nameservers.isOwn && !isUnclear;
    // Who may say what, most trusted first: the operator, whoever created the container, the author of its image.
    const says: RouteLayer[] = [
      ...joined.map(({ network: { name } }) =>
        routeLayer(`the settings of network "${name}"`, networks.get(name) ?? []),
      ),
      routeLayer("the settings, dns", everyone),
      routeLayer(
        "the settings, kind.host-docker-internal",
        node?.hostDockerInternal === "deny" ? [{ domains: [HOST_DOCKER_INTERNAL], servers: [], isLocal: true }] : [],
      ),
      routeLayer(`its label ${DNS_LABEL}`, labelRoutes(labels, place).say),
      routeLayer("its own --dns", isOwn ? [{ domains: [""], servers: listed, isLocal: false }] : []),
      routeLayer(`its image's label ${DNS_LABEL}`, trustsImages ? labelRoutes(imageLabels.labels, place).say : []),
    ];
    const fallbackBy =
      listed === doors
        ? "what is left: no interface tells Docker's list, so its own resolver behind us is asked"
        : FALLBACK_ORIGINS[nameservers.kind];
    return {
      routes: routesOf({
        layers: says,
        fallback: listed,
        fallbackBy,
        host: this.#host,
        hasExternalAccess: reaches || isUnclear,
      }),
      isNdotsSet: isNdotsSet || (!isUnclear && nameservers.kind !== "unknown" && nameservers.isNdotsSet),
    };
  }

  /** The list that Docker would ask. */
  #listed(nameservers: NameserversFact, doors: readonly Server[], ownAddresses: readonly string[]): readonly Server[] {
    if (nameservers.kind === "unknown") return doors;
    // Where the host names nobody, engines up to 27 have somebody to ask all the same.
    if (nameservers.kind === "host") return this.#host.length > 0 ? this.#host : doors;
    return nameservers.servers
      .filter(({ from, address }) => from === "host" || !ownAddresses.some((own) => isSameAddress(address, own)))
      .slice(0, this.#serversMax)
      .map((server): Server => ({ ...server, port: DNS_PORT }));
  }
}

/** A bridge without a gateway leads nowhere; what another driver does without one (ipvlan l3 routes) is its own affair. */
function mayReachOutside({ network }: JoinedNetwork): boolean {
  const isKnown = network.driver === "bridge" || DRIVERS_WITHOUT_OUTSIDE.has(network.driver);
  return !network.isInternal && !isKnown;
}

function reachesOutside({ endpoint, network }: JoinedNetwork): boolean {
  if (network.isInternal || DRIVERS_WITHOUT_OUTSIDE.has(network.driver)) return false;
  return endpoint.ipv4Gateway !== undefined || endpoint.ipv6Gateway !== undefined;
}
