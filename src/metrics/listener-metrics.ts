/**
 * ListenerMetrics: what arrives at addresses of the host, and what got no reply there: the listener for containers, and each entry of
 * `listen`.
 */
import type { ListenReports } from "../base/model/listen-report.ts";
import { listenId } from "../base/model/listen-policy.ts";
import type { ListenerReport } from "../base/model/listener-report.ts";
import type { Family, Sample } from "./exposition.ts";
import { counter, gauge, sample } from "./family.ts";

export interface ListenerReadings {
  /** null where it is off. */
  readonly listener: ListenerReport | null;
  readonly listen: ListenReports | null;
}

/** None where nothing listens. */
export function listenerFamilies({ listener, listen }: ListenerReadings): Family[] {
  if (listener === null && listen === null) return [];
  const entries = listen?.entries ?? [];
  const places = [
    ...(listener === null ? [] : [{ ...listener, name: "listener", isServing: listener.state === "serving" }]),
    ...entries.map((each) => {
      const isServing = each.addresses.every(({ state }) => state === "serving");
      return { ...each, name: listenId(each.name), isServing };
    }),
  ];
  const queries = places.map((each) => sample(each.queries, { listener: each.name }));
  const lost = places.map((each) => sample(each.lost, { listener: each.name }));
  const serving = places.map((each) => sample(Number(each.isServing), { listener: each.name }));
  return [
    counter("dns11_listener_queries_total", "UDP queries and TCP connections at addresses of the host.", queries),
    counter(
      "dns11_listener_refused_total",
      "Packets and TCP connections at addresses of the host that got no reply, by reason.",
      [
        ...places.flatMap(({ refused, name }) => byReason(refused, name)),
        ...(listen === null ? [] : byReason(listen.dropped, "listen")),
      ],
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
