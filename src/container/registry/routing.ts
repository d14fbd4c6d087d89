/**
 * Routing: what the routes of a container are merged from, by precedence: settings, labels, and the servers that Docker would
 * query.
 */
import type { LabelPolicy } from "../../base/model/label-policy.ts";
import type { RouteRules } from "../../base/model/route-rules.ts";
import { DNS_PORT } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import type { JoinedNetwork } from "../names/docker/search-order.ts";
import { HOST_DOCKER_INTERNAL } from "../names/host-name/host-name.ts";
import type { NodeContext } from "../names/source/name-source.ts";
import type { ContainerFact, NameserversFact } from "../facts/fact.ts";
import { DNS_LABEL, labelRoutes } from "./label-routes.ts";
import { listedServers } from "./listed-servers.ts";
import { mayReachOutside, reachesOutside } from "./outside-access.ts";
import { type RouteLayer, routeLayer } from "./routes.ts";

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

interface RoutingParts {
  /** How many servers of Docker's list are used. */
  readonly serversMax: number;
  /** dns11's own address: as a server of a container it would be a forwarding loop. */
  readonly ownAddress: string;
  /** The container's networks, in search order. */
  readonly joined: readonly JoinedNetwork[];
  readonly rules: RouteRules;
  readonly labelPolicy: LabelPolicy;
  /** Domains that exist in no upstream. */
  readonly denied: readonly string[];
  readonly host: readonly Server[];
  /** Docker's resolver answers its every query. */
  readonly isLeftToDocker: boolean;
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
  const isOwn = nameservers.kind === "listed" && nameservers.isOwn && !isUnclear;
  // The order is the precedence: the operator, the container's creator, the author of its image.
  const layers: RouteLayer[] = [
    ...joined.map(({ network: { name } }) =>
      routeLayer(`the setting dns of network "${name}"`, networks.get(name) ?? []),
    ),
    routeLayer("the setting dns", everyone),
    routeLayer("the setting host-names", [{ domains: denied, servers: [], isLocal: true }]),
    routeLayer(
      "the setting kind.host-docker-internal",
      node?.hostDockerInternal === "deny" ? [{ domains: [HOST_DOCKER_INTERNAL], servers: [], isLocal: true }] : [],
    ),
    routeLayer(`label ${DNS_LABEL} of the container`, labelRoutes(labels, labelServers).layer),
    routeLayer("--dns of the container", isOwn ? [{ domains: [""], servers: listed, isLocal: false }] : []),
    routeLayer(
      `label ${DNS_LABEL} of the image`,
      trustsImages ? labelRoutes(imageLabels.labels, labelServers).layer : [],
    ),
  ];
  const listedBy =
    listed === dockerServers
      ? "Docker's resolver: the container's list of servers cannot be determined"
      : FALLBACK_ORIGINS[nameservers.kind];
  return { layers, listed, listedBy, hasGateway, isUnclear };
}
