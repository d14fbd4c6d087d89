/**
 * OutsideAccess: whether a network gives its containers access to what is outside, and so to the host's servers.
 */
import type { NetworkFact } from "../facts/fact.ts";
import type { JoinedNetwork } from "../names/docker/search-order.ts";

/** Drivers whose networks have no external access, with or without a gateway. */
const DRIVERS_WITHOUT_OUTSIDE = new Set(["null", "host"]);

/** A bridge without a gateway has no external access; other drivers may have it without one (ipvlan l3 routes). */
export function mayReachOutside({ network }: JoinedNetwork): boolean {
  const isKnown = network.driver === "bridge" || isOfSwarm(network) || DRIVERS_WITHOUT_OUTSIDE.has(network.driver);
  return !network.isInternal && !isKnown;
}

export function reachesOutside({ endpoint, network }: JoinedNetwork): boolean {
  if (network.isInternal || DRIVERS_WITHOUT_OUTSIDE.has(network.driver)) return false;
  // Docker gives each of its containers an interface on docker_gwbridge, which no inspect shows.
  if (isOfSwarm(network)) return true;
  return endpoint.ipv4Gateway !== undefined || endpoint.ipv6Gateway !== undefined;
}

function isOfSwarm({ driver, swarm }: NetworkFact): boolean {
  return driver === "overlay" && swarm !== undefined;
}
