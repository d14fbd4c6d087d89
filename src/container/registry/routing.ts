/**
 * Routing: what the routes of a container are merged from, by precedence: settings, labels, and the servers that Docker would
 * query.
 */
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import { DNS_PORT, type RouteRules } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { isListenerAddress } from "../../base/model/listener-addresses.ts";
import type { JoinedNetwork } from "../names/docker/networks.ts";
import { HOST_DOCKER_INTERNAL } from "../names/host-name/host-name.ts";
import type { NodeContext } from "../names/source/name-source.ts";
import type { ContainerFact, NameserversFact, NetworkFact } from "../facts/fact.ts";
import { DNS_LABEL, labelRoutes } from "./label-routes.ts";
import { type RouteLayer, routeLayer } from "./routes.ts";

/** Drivers whose networks have no external access, with or without a gateway. */
const DRIVERS_WITHOUT_OUTSIDE = new Set(["null", "host"]);

interface ListedServersParts {
  readonly host: readonly Server[];
  /** Docker's resolver, where only Docker knows; that very list is returned then. */
  readonly dockerServers: readonly Server[];
  /** dns11's own: as servers of a container they would be a forwarding loop. */
  readonly ownAddresses: readonly string[];
  /** How many servers of Docker's list are used. */
  readonly serversMax: number;
}

/** Docker's embedded DNS, reached by the passthrough. */
const DOCKER_SERVER: Server = { from: "docker", address: "127.0.0.11", port: DNS_PORT };
/** The origin of the default servers, for `dns11 explain`. */
const FALLBACK_ORIGINS: Readonly<Record<NameserversFact["kind"], string>> = {
  listed: "Docker's list for this container",
  host: "the host's current resolv.conf",
  captured: "resolv.conf of the container",
  unknown: "",
};

/** What the routes of a container are merged from. */
export interface Routing {
  readonly layers: readonly RouteLayer[];
  /** What Docker would query, and where that list comes from. */
  readonly listed: readonly Server[];
  readonly listedBy: string;
  readonly hasGateway: boolean;
  readonly isUnclear: boolean;
}

/** Domains that exist in no upstream, and who says so. */
export interface DeniedDomains {
  readonly domains: readonly string[];
  readonly by: string;
}

interface RoutingParts {
  /** How many servers of Docker's list are used. */
  readonly serversMax: number;
  /** dns11's own address: as a server of a container it would be a forwarding loop. */
  readonly ownAddress: string;
  /** The container's networks, in search order. */
  readonly joined: readonly JoinedNetwork[];
  readonly rules: RouteRules;
  readonly labelPolicy: LabelPolicy;
  readonly denied: DeniedDomains;
  /** The servers of features, for domains that nobody else routes. */
  readonly ofFeatures: RouteLayer;
  readonly host: readonly Server[];
  /** Docker's resolver answers its every query. */
  readonly isLeftToDocker: boolean;
  /** The host's servers are asked where Docker's resolver is and fails. */
  readonly replacesDocker: boolean;
}

export function routingOf(fact: ContainerFact, node: NodeContext | undefined, parts: RoutingParts): Routing {
  const { labels, imageLabels, nameservers } = fact;
  const { joined, host, denied, serversMax } = parts;
  const { everyone, networks } = parts.rules;
  const { trustsImages, servers: labelServers } = parts.labelPolicy;
  const hasGateway = joined.some(reachesOutside);
  // Some drivers give external access in ways the API does not report; only Docker knows then whether to use the
  // host's servers.
  const isUnclear = parts.isLeftToDocker || (!hasGateway && joined.some(mayReachOutside));
  const ownAddresses = [parts.ownAddress, ...(node?.ownAddresses ?? [])];
  // KIND's entrypoint moves Docker's resolver to another address.
  const dockerServers = [
    DOCKER_SERVER,
    ...(node?.ownAddresses ?? []).map((address): Server => ({ ...DOCKER_SERVER, address })),
  ];
  const listed = isUnclear
    ? dockerServers
    : listedServers(nameservers, { host, dockerServers, ownAddresses, serversMax });
  // Whether an unclear container may reach outside, Docker alone knows; and a name of a swarm is not for the host's servers.
  const mayReplaceDocker = parts.replacesDocker && hasGateway && !isUnclear && !joined.some(isSwarms);
  const isReplaced =
    listed === dockerServers && nameservers.kind === "unknown" && nameservers.mayBeHosts === true && mayReplaceDocker;
  const isOwn = nameservers.kind === "listed" && nameservers.isOwn && !isUnclear;
  // The order is the precedence: the operator, the container's creator, the author of its image.
  const layers: RouteLayer[] = [
    ...joined.map(({ network: { name } }) =>
      routeLayer(`the setting dns of network "${name}"`, networks.get(name) ?? []),
    ),
    routeLayer("the setting dns", everyone),
    routeLayer(denied.by, [{ domains: denied.domains, servers: [], isLocal: true }]),
    ...(node?.hostDockerInternal === "deny"
      ? [
          routeLayer(`the setting ${node.hostDockerInternalBy}`, [
            { domains: [HOST_DOCKER_INTERNAL], servers: [], isLocal: true },
          ]),
        ]
      : []),
    routeLayer(`label ${DNS_LABEL} of the container`, labelRoutes(labels, labelServers).layer),
    routeLayer("--dns of the container", isOwn ? [{ domains: [""], servers: listed, isLocal: false }] : []),
    routeLayer(
      `label ${DNS_LABEL} of the image`,
      trustsImages ? labelRoutes(imageLabels.labels, labelServers).layer : [],
    ),
    parts.ofFeatures,
  ];
  const listedBy =
    listed === dockerServers
      ? "Docker's resolver: the container's list of servers cannot be determined"
      : FALLBACK_ORIGINS[listed === host ? "host" : nameservers.kind];
  return { layers, listed: isReplaced ? [...listed, ...substitutes(host)] : listed, listedBy, hasGateway, isUnclear };
}

/** What is behind a stub resolver of the host stays for when that one is away. */
function substitutes(host: readonly Server[]): Server[] {
  return host.filter(({ isBackup }) => isBackup !== true).map((server) => ({ ...server, isBackup: true }));
}

function isSwarms({ network }: JoinedNetwork): boolean {
  return isOfSwarm(network);
}

/** The servers that Docker would query for a container. */
function listedServers(
  nameservers: NameserversFact,
  { host, dockerServers, ownAddresses, serversMax }: ListedServersParts,
): readonly Server[] {
  if (nameservers.kind === "unknown") return dockerServers;
  // Without host servers, engines up to 27 still have servers of their own.
  if (nameservers.kind === "host") return host.length > 0 ? host : dockerServers;
  if (nameservers.kind === "captured" && nameservers.followsHost && host.length > 0) return host;
  const servers =
    nameservers.kind === "captured"
      ? nameservers.servers.map((address) => ({ from: "container" as const, address }))
      : nameservers.servers;
  const usable = servers.filter(
    ({ from, address }) => from === "host" || !ownAddresses.some((own) => isSameAddress(address, own)),
  );
  const listener = usable.find(({ address }) => isListenerAddress(address));
  return usable
    .flatMap((server) => {
      if (isListenerAddress(server.address)) return server === listener ? host : [];
      return [{ ...server, port: DNS_PORT }];
    })
    .slice(0, serversMax);
}

/** Whether a network may give external access without a gateway: ipvlan l3 routes, for example. A bridge does not. */
function mayReachOutside({ network }: JoinedNetwork): boolean {
  const isKnown = network.driver === "bridge" || isOfSwarm(network) || DRIVERS_WITHOUT_OUTSIDE.has(network.driver);
  return !network.isInternal && !isKnown;
}

function reachesOutside({ endpoint, network }: JoinedNetwork): boolean {
  if (network.isInternal || DRIVERS_WITHOUT_OUTSIDE.has(network.driver)) return false;
  // Docker gives each of its containers an interface on docker_gwbridge, which no inspect shows.
  if (isOfSwarm(network)) return true;
  return endpoint.ipv4Gateway !== undefined || endpoint.ipv6Gateway !== undefined;
}

function isOfSwarm({ driver, swarm }: NetworkFact): boolean {
  return driver === "overlay" && swarm !== undefined;
}
