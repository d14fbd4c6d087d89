/**
 * What arrives at addresses of the host, and what got no reply there: of all that answer at such addresses in the same families.
 */
import type { Family, Sample } from "./exposition.ts";
import { counter, gauge, sample } from "./family.ts";

interface HostAddressReadings {
  readonly name: string;
  /** Whether it answers at all of its addresses. */
  readonly isServing: boolean;
  readonly queries: number;
  /** What got no reply, by reason. */
  readonly refused: Readonly<Record<string, number>>;
  /** Queries that found a socket's buffer full. */
  readonly lost: number;
}

/** `dropped`: what rules have dropped before it reached any of them, by reason, under a name of its own. */
export function hostAddressFamilies(
  places: readonly HostAddressReadings[],
  dropped?: { readonly name: string; readonly refused: Readonly<Record<string, number>> },
): Family[] {
  const queries = places.map((each) => sample(each.queries, { listener: each.name }));
  const lost = places.map((each) => sample(each.lost, { listener: each.name }));
  const serving = places.map((each) => sample(Number(each.isServing), { listener: each.name }));
  return [
    counter("dns11_listener_queries_total", "UDP queries and TCP connections at addresses of the host.", queries),
    counter(
      "dns11_listener_refused_total",
      "Packets and TCP connections at addresses of the host that got no reply, by reason.",
      [...places, ...(dropped === undefined ? [] : [dropped])].flatMap(({ refused, name }) => byReason(refused, name)),
    ),
    counter(
      "dns11_listener_lost_total",
      "UDP queries at addresses of the host that were lost because dns11 did not read them in time.",
      lost,
    ),
    gauge("dns11_listener_serving", "Whether dns11 answers at all of its addresses of the host.", serving),
  ];
}

function byReason(counts: Readonly<Record<string, number>>, listener: string): Sample[] {
  return Object.entries(counts).map(([reason, count]) => sample(count, { listener, reason }));
}
