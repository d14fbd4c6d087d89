/**
 * Upstreams: every upstream server of the served containers: where it is queried from, for which names, and its state. A
 * server queried from the host is the same for all; one queried from inside is a different one in each container.
 */
import { inSlices } from "../../base/lib/slices.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { MissingServer, Route, Server } from "../../base/model/view.ts";
import { presentation } from "../../base/dns/name.ts";
import type { Client } from "../../query/client/client.ts";
import type { Nameserver } from "../../query/upstream/nameserver.ts";
import type { ControlPorts } from "../situation/ports.ts";
import type { Upstream, UpstreamReport, UpstreamUse } from "../../api/upstreams.ts";

interface UpstreamUsage {
  readonly server: Server;
  readonly container: string | undefined;
  readonly client: Client | undefined;
  readonly uses: Uses;
}

type Uses = Map<string, { readonly use: Omit<UpstreamUse, "containers">; readonly containers: Set<string> }>;

export async function upstreams({ resolver, containers }: ControlPorts): Promise<UpstreamReport> {
  const { found, missing } = await collectUsage(containers);
  const { upstreamState } = resolver();
  const now = upstreamState?.now() ?? 0;
  const all = [...found.values()].map(({ server, container, client, uses }) => ({
    server: serverText(server),
    address: server.address,
    port: server.port,
    from: server.from,
    container: container ?? null,
    isBackup: server.isBackup === true,
    uses: usesOf(uses),
    ...stateOf(upstreamState?.pool.find(client, server), now),
  }));
  const lost = [...missing.values()].map(({ uses, ...each }) => ({ ...each, uses: usesOf(uses) }));
  return {
    tracksServers: upstreamState !== undefined,
    upstreams: all,
    ...(lost.length > 0 && { missing: lost }),
  };
}

function usesOf(uses: Uses): UpstreamUse[] {
  return [...uses.values()]
    .map(({ use, containers }): UpstreamUse => ({ ...use, containers: [...containers].toSorted() }))
    .toSorted((a, b) => (a.domain < b.domain ? -1 : 1));
}

/** The servers, and the containers that were named as servers and cannot be queried. */
interface Usage {
  readonly found: Map<string, UpstreamUsage>;
  readonly missing: Map<string, MissingServer & { readonly uses: Uses }>;
}

/** Works in slices, because it takes the view of each container. */
async function collectUsage(containers: ControlPorts["containers"]): Promise<Usage> {
  const usage: Usage = { found: new Map(), missing: new Map() };
  await inSlices(eachUsage(containers, usage));
  return usage;
}

function* eachUsage(containers: ControlPorts["containers"], { found, missing }: Usage): Generator<void> {
  for (const id of [...containers.facts.keys()]) {
    yield;
    const fact = containers.facts.get(id);
    if (fact === undefined || containers.decisionOf(id)?.kind !== "serve") continue;
    const client = containers.clients.of(fact.id);
    for (const route of containers.viewOf(fact).upstreams.routes.toReversed()) {
      for (const server of route.servers) addServer(found, route, server, { name: fact.name, client });
      for (const { server, reason } of route.missing ?? []) {
        const key = `${server} ${reason}`;
        const usage = missing.get(key) ?? { server, reason, uses: new Map() };
        missing.set(key, usage);
        addUse(usage.uses, route, fact.name);
      }
    }
  }
}

function addServer(
  found: Map<string, UpstreamUsage>,
  route: Route,
  server: Server,
  { name, client }: { readonly name: string; readonly client: Client | undefined },
): void {
  const container = server.from === "host" ? undefined : name;
  const key = `${server.from} ${serverText(server)} ${server.isBackup === true} ${container ?? ""}`;
  const usage = found.get(key) ?? { server, container, client, uses: new Map() };
  found.set(key, usage);
  addUse(usage.uses, route, name);
}

function addUse(uses: Uses, route: Route, name: string): void {
  const domain = presentation(route.suffix, 0, route.suffix.length);
  const useKey = `${domain} ${route.by ?? ""}`;
  const use = uses.get(useKey) ?? { use: { domain, by: route.by ?? null }, containers: new Set() };
  uses.set(useKey, use);
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
