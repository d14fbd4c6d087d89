/**
 * Gateways: the way out of a container's networks. A container without one reaches nothing but its own networks.
 */
import type { ContainerFact, NetworkFact, EndpointFact } from "../../facts/fact.ts";

export interface Gateways {
  readonly ipv4: string | undefined;
  readonly ipv6: string | undefined;
}

/** The first of each family. On internal networks, old engines report one that leads nowhere. */
export function gatewaysOf({ endpoints }: ContainerFact, networkOf: (id: string) => NetworkFact | undefined): Gateways {
  const open = endpoints.filter(({ networkId }) => networkOf(networkId)?.isInternal !== true);
  const first = (key: "ipv4Gateway" | "ipv6Gateway"): string | undefined =>
    open.map((endpoint) => endpoint[key]).find((gateway) => gateway !== undefined);
  return { ipv4: first("ipv4Gateway"), ipv6: first("ipv6Gateway") };
}

/**
 * The order in which sources of dns11's own search a container's networks. Those that keep their containers apart
 * come last, because an address there leads nowhere.
 */
export function apartLast(
  endpoints: readonly EndpointFact[],
  networkOf: (id: string) => NetworkFact | undefined,
): readonly EndpointFact[] {
  const rank = ({ networkId }: EndpointFact): number => (networkOf(networkId)?.apartBy === undefined ? 0 : 1);
  return endpoints.toSorted((a, b) => rank(a) - rank(b));
}
