/**
 * Upstreams: every upstream server of the served containers: where it is queried from, for which names, and its state. A
 * server queried from the host is the same for all; one queried from inside is a different one in each container.
 */
import { serverText } from "../base/model/server-text.ts";
import type { Route, Server } from "../base/model/view.ts";
import { presentation } from "../base/dns/name.ts";
import type { Client } from "../query/client/client.ts";
import { Endpoint } from "../query/listen/endpoint.ts";
import type { Nameserver } from "../query/upstream/nameserver.ts";
import type { ControlPorts } from "./ports.ts";
import type { Upstream, UpstreamReport, UpstreamUse } from "../api/upstreams.ts";

interface UpstreamUsage {
  readonly server: Server;
  readonly container: string | undefined;
  readonly client: Client | undefined;
  readonly uses: Map<string, { readonly use: Omit<UpstreamUse, "containers">; readonly containers: Set<string> }>;
}

export function upstreams({ resolver, containers }: ControlPorts): UpstreamReport {
  const { upstreamState } = resolver();
  const now = upstreamState?.now() ?? 0;
  const all = [...collectUsage(containers).values()].map(({ server, container, client, uses }) => ({
    server: serverText(server),
    address: server.address,
    port: server.port,
    from: server.from,
    container: container ?? null,
    isBackup: server.isBackup === true,
    uses: [...uses.values()]
      .map(({ use, containers: by }): UpstreamUse => ({ ...use, containers: [...by].toSorted() }))
      .toSorted((a, b) => (a.domain < b.domain ? -1 : 1)),
    ...stateOf(upstreamState?.pool.find(client, server), now),
  }));
  return { tracksServers: upstreamState !== undefined, upstreams: all };
}

function collectUsage(containers: ControlPorts["containers"]): Map<string, UpstreamUsage> {
  const found = new Map<string, UpstreamUsage>();
  for (const fact of containers.facts.values()) {
    if (containers.decisionOf(fact.id)?.kind !== "serve") continue;
    const endpoint = containers.attachmentOf(fact.id)?.endpoint;
    const client = endpoint instanceof Endpoint ? endpoint.client : undefined;
    for (const route of containers.viewOf(fact).upstreams.routes.toReversed()) {
      for (const server of route.servers) addUse(found, route, server, { name: fact.name, client });
    }
  }
  return found;
}

function addUse(
  found: Map<string, UpstreamUsage>,
  route: Route,
  server: Server,
  { name, client }: { readonly name: string; readonly client: Client | undefined },
): void {
  const container = server.from === "host" ? undefined : name;
  const key = `${server.from} ${serverText(server)} ${server.isBackup === true} ${container ?? ""}`;
  const usage = found.get(key) ?? { server, container, client, uses: new Map() };
  found.set(key, usage);
  const domain = presentation(route.suffix, 0, route.suffix.length);
  const useKey = `${domain} ${route.by ?? ""}`;
  const use = usage.uses.get(useKey) ?? { use: { domain, by: route.by ?? null }, containers: new Set() };
  usage.uses.set(useKey, use);
  use.containers.add(name);
}

type UpstreamState = Omit<Upstream, "server" | "address" | "port" | "from" | "container" | "isBackup" | "uses">;

const NO_STATE: UpstreamState = {
  state: "unknown",
  since: null,
  reason: null,
  rttMs: null,
  deviationMs: null,
  counters: null,
  edns: null,
  isLooping: null,
  loopsUntil: null,
};

function stateOf(nameserver: Nameserver | undefined, now: number): UpstreamState {
  if (nameserver === undefined) return NO_STATE;
  const { health } = nameserver;
  const isDown = health.checkIsDown(now);
  const isLooping = nameserver.isLooping(now);
  return {
    state: isDown ? "down" : "up",
    since: health.sinceMs === undefined ? null : iso(health.sinceMs, now),
    reason: health.reason ?? null,
    rttMs: health.rttMs ?? null,
    deviationMs: health.rttMs === undefined ? null : health.deviationMs,
    counters: { ...health.counters },
    edns: nameserver.speaksEdns(now),
    isLooping,
    loopsUntil: isLooping ? iso(nameserver.loopsUntilMs, now) : null,
  };
}

/** Converts a time of the monotonic clock to ISO 8601. */
function iso(ms: number, now: number): string {
  return new Date(Date.now() + ms - now).toISOString();
}
