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
  const queries = [
    ...(listener === null ? [] : [sample(listener.queries, { listener: "listener" })]),
    ...entries.map((each) => sample(each.queries, { listener: listenId(each.name) })),
  ];
  const lost = [
    ...(listener === null ? [] : [sample(listener.lost, { listener: "listener" })]),
    ...entries.map((each) => sample(each.lost, { listener: listenId(each.name) })),
  ];
  const serving = [
    ...(listener === null ? [] : [sample(Number(listener.state === "serving"), { listener: "listener" })]),
    ...entries.map(({ name, addresses }) =>
      sample(Number(addresses.every(({ state }) => state === "serving")), { listener: listenId(name) }),
    ),
  ];
  return [
    counter("dns11_listener_queries_total", "UDP queries and TCP connections at addresses of the host.", queries),
    counter(
      "dns11_listener_refused_total",
      "Packets and TCP connections at addresses of the host that got no reply, by reason.",
      [
        ...(listener === null ? [] : byReason(listener.refused, "listener")),
        ...(listen === null ? [] : byReason(listen.dropped, "listen")),
        ...entries.flatMap((each) => byReason(each.refused, listenId(each.name))),
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
