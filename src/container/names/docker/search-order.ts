/**
 * SearchOrder: the order in which a container's networks are searched, which decides between several networks that have
 * a name. It is the order in which Docker sorts the endpoints of a sandbox.
 */
import type { EndpointFact, NetworkFact } from "../../facts/fact.ts";

export interface JoinedNetwork {
  readonly endpoint: EndpointFact;
  readonly network: NetworkFact;
}

/** Higher gateway priority first, internal networks last, more gateways first, then by the bytes of the name. */
export function inSearchOrder(joined: readonly JoinedNetwork[]): JoinedNetwork[] {
  return joined.toSorted(
    (a, b) =>
      b.endpoint.gatewayPriority - a.endpoint.gatewayPriority ||
      Number(a.network.isInternal) - Number(b.network.isInternal) ||
      gateways(b.endpoint) - gateways(a.endpoint) ||
      Buffer.compare(Buffer.from(a.network.name), Buffer.from(b.network.name)),
  );
}

function gateways({ ipv4Gateway, ipv6Gateway }: EndpointFact): number {
  return Number(ipv4Gateway !== undefined) + Number(ipv6Gateway !== undefined);
}
