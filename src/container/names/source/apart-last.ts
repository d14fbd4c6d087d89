/**
 * ApartLast: the order in which sources of dns11's own search a container's networks. Those that keep their containers apart
 * come last, because an address there leads nowhere.
 */
import type { EndpointFact, NetworkFact } from "../../facts/fact.ts";

export function apartLast(
  endpoints: readonly EndpointFact[],
  networkOf: (id: string) => NetworkFact | undefined,
): readonly EndpointFact[] {
  const rank = ({ networkId }: EndpointFact): number => (networkOf(networkId)?.apartBy === undefined ? 0 : 1);
  return endpoints.toSorted((a, b) => rank(a) - rank(b));
}
