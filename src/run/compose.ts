/**
 * Compose: where the two ways are built and meet, in the order of the drawing in ARCHITECTURE.md. The registry's names
 * are read by the answerer through the view that each endpoint holds; the sockets made in a namespace are handed to the
 * listeners.
 */
import { LIMITS } from "../config/limits.ts";
import type { RunSettings } from "../config/settings.ts";
import { Reconciler } from "../container/attach/reconciler.ts";
import { DOCKER_RESOLVER } from "../container/capture/capture.ts";
import type { Bracket } from "../container/namespace/bracket.ts";
import type { EngineHost } from "../container/namespace/engine-host.ts";
import type { Journal } from "../container/kind/journal.ts";
import { Nodes } from "../container/kind/nodes.ts";
import { NOTHING_TO_UNDO, undoNode } from "../container/kind/undo.ts";
import { type NamespaceClaim, type ProvenNamespace, proveNamespace } from "../container/namespace/proof.ts";
import { Directory } from "../container/registry/directory.ts";
import { Roster } from "../container/roster.ts";
import type { Engine, EngineInfo } from "../container/watch/engine.ts";
import { Follower } from "../container/watch/follower.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { zones } from "../container/rules/zones.ts";
import type { RuleMeans } from "../model/rule-tier.ts";
import type { Server } from "../model/view.ts";
import type { Log } from "../observe/log.ts";
import { Repeats } from "../observe/repeats.ts";
import type { Book } from "../query/ledger/book.ts";
import { descriptorsMax } from "../kernel/descriptors.ts";
import type { Quarantines } from "./quarantine/quarantines.ts";
import { QueryLog } from "../control/query-log.ts";
import { QueryReader } from "../control/query-reader.ts";
import { HostUpstreams } from "../container/watch/host-upstreams.ts";
import { type QueryWay, composeQueryWay } from "./query-way.ts";
import { WayCounts } from "../metrics/way-counts.ts";

export interface Composition extends ContainerWay {
  readonly queryWay: QueryWay;
  readonly parts: Pick<ComposeParts, "engine" | "bracket" | "host" | "quarantines">;
  /** Goes by other settings from now on, as far as a reload may change them. */
  readonly reconfigure: (settings: RunSettings) => void;
  readonly counts: WayCounts;
  readonly repeats: Repeats;
  /** What containers asked lately, who reads it, and who writes it into the log. */
  readonly book: Book;
  readonly reader: QueryReader;
  readonly queryLog: QueryLog;
}

interface ContainerWay {
  readonly roster: Roster;
  readonly nodes: Nodes;
  readonly directory: Directory;
  readonly reconciler: Reconciler;
  readonly follower: Follower;
  readonly hostUpstreams: HostUpstreams;
}

export interface ComposeParts {
  /** The settings of the start. */
  readonly settings: RunSettings;
  readonly log: Log;
  readonly engine: Engine;
  readonly bracket: Bracket;
  readonly memory: NetlinkMemory;
  /** By what rules are held. */
  readonly means: RuleMeans;
  /** What is to be undone in KIND nodes. */
  readonly journal: Journal;
  /** The engine's host as it is now; another one after the engine was restarted. */
  readonly host: () => EngineHost;
  readonly onEngine: (info: EngineInfo) => void;
  readonly engineVersion: () => number;
  /** Which containers may end dns11 again. */
  readonly quarantines: Quarantines;
}

export function compose(parts: ComposeParts): Composition {
  const repeats = new Repeats(parts.log);
  const counts = new WayCounts(parts.settings.metrics.containers);
  const { box } = parts.quarantines;
  const queryWay = composeQueryWay(parts.settings, parts.log, repeats, (asker, id) => box.name(asker, id));
  const { book } = queryWay;
  const containerWay = composeContainerWay(parts, queryWay, { counts, repeats });
  const { directory, roster, nodes, follower, hostUpstreams } = containerWay;
  const reader = new QueryReader(book, (id) => directory.containers.get(id)?.name);
  const queryLog = new QueryLog(reader, parts.log);
  queryLog.setOn(parts.settings.queries.isLogged);
  return {
    ...containerWay,
    queryWay,
    counts,
    repeats,
    book,
    reader,
    queryLog,
    parts,
    reconfigure: (settings) => {
      queryWay.reconfigure(settings);
      counts.setContainersMax(settings.metrics.containers);
      queryLog.setOn(settings.queries.isLogged);
      directory.setRules(settings.routes);
      directory.setLabelPolicy(settings.labels);
      directory.setServersMax(serversMax(settings));
      roster.setOnly(settings.only, settings.labels);
      nodes.setPolicy(settings.kind, settings.labels);
      if (hostUpstreams.configure(settings)) follower.lookAgain();
      roster.refresh();
    },
  };
}

/** watch -> registry -> attach (capture, namespace, rules). */
function composeContainerWay(
  parts: ComposeParts,
  { openEndpointFor, onUpstreamsChanged, book }: QueryWay,
  { counts, repeats }: { readonly counts: WayCounts; readonly repeats: Repeats },
): ContainerWay {
  const { settings, log, engine, bracket, memory, means, journal, host, onEngine, engineVersion, quarantines } = parts;
  const directory = new Directory({ serversMax: serversMax(settings), ownAddress: DOCKER_RESOLVER });
  directory.setRules(settings.routes);
  directory.setLabelPolicy(settings.labels);
  const prove = (claim: NamespaceClaim): ProvenNamespace => proveNamespace(claim, host(), bracket.homeId);
  const nameOf = (id: string): string => directory.containers.get(id)?.name ?? id.slice(0, 12);
  const reconciler = new Reconciler(
    {
      bracket,
      memory,
      means,
      host,
      prove,
      nextZone: zones(),
      openEndpointFor,
      isSuspect: quarantines.isSuspect,
      areAllKnown: () => follower.isSynced,
      attaching: (id, work) => quarantines.box.attaching(id, work),
      descriptorsMax: descriptorsMax(),
      onServing: (id, counters, isServing) => (isServing ? counts.began(nameOf(id), counters) : counts.ended(counters)),
    },
    (id, state) => {
      const wasFailed = counts.onState(id, state);
      const container = nameOf(id);
      if (state.kind === "attached" && wasFailed) {
        repeats.tell("info", container, { container }, "attached; it was Docker's for a while", "attaching");
      } else if (state.kind === "attached") log.debug({ container }, "attached");
      if (state.kind === "failed") {
        const { code, reason, culprits } = state;
        const about = { container, code, reason, culprits };
        const who = code === "OWNED_ELSEWHERE" ? "another dns11 serves it" : "Docker's resolver answers";
        repeats.tell("warn", container, about, `not attached; ${who}`, "attaching");
      }
    },
  );
  const nodes = new Nodes(
    {
      bracket,
      memory,
      journal,
      host,
      networkOf: (id) => directory.network(id),
      onChange: (id) => reconciler.refit(id),
      onNews: (about, text, level = "info") => log[level](about, text),
    },
    settings.kind,
    settings.labels,
  );
  const roster = new Roster({
    directory,
    reconciler,
    nodes,
    only: settings.only,
    quarantineOf: quarantines.reasonFor,
    labelPolicy: settings.labels,
    onWarning: ({ name: container }, warning) =>
      repeats.tell("warn", container, { container, warning }, "odd container"),
  });
  const refreshHostGateway = async (): Promise<void> => {
    if (nodes.setHostGateway(await learnHostGateway(engine))) roster.refresh();
  };
  const onChange = (servers: readonly Server[]): void => {
    directory.setHost(servers);
    roster.refresh();
    onUpstreamsChanged();
  };
  const lookAgain = (ids: readonly string[]): void => follower.lookAgain(ids);
  const hostUpstreams = new HostUpstreams({ log, host, engineVersion, onChange, lookAgain }, settings);
  directory.setHost(hostUpstreams.servers);
  let isAway = false;
  const follower = new Follower(engine, {
    onEngine: (info) => {
      onEngine(info);
      if (isAway) repeats.tell("info", "", { version: info.version }, "the engine answers again", "engine");
      isAway = false;
      hostUpstreams.look();
      void refreshHostGateway();
    },
    onAway: (reason) => {
      counts.engineLosses++;
      isAway = true;
      repeats.tell("warn", "", { reason }, "the engine is away; last-known names keep answering", "engine");
    },
    onEventDone: (lagMs) => counts.eventLag.add(0, lagMs / 1_000),
    onSynced: () => {
      log.info({ containers: directory.containers.size }, "every running container is known");
      for (const line of undoOldNodes(parts, { directory, nodes })) log.info(line, "left behind by a dns11 before");
    },
    onNetwork: (fact) => directory.putNetwork(fact),
    onNetworkGone: (id) => directory.removeNetwork(id),
    onContainer: (fact) => quarantines.box.attaching(fact.id, () => roster.put(fact)),
    onContainerGone: (id) => {
      book.name(id, nameOf(id));
      roster.remove(id);
    },
    onInspectFailed: (id, reason) => {
      counts.inspectFailures++;
      const container = nameOf(id);
      repeats.tell("warn", container, { container, reason }, "cannot inspect; trying again");
    },
    nameserversOf: (json) => hostUpstreams.nameserversOf(json),
    known: () => directory.containers,
    hasNetwork: (id) => directory.network(id) !== undefined,
  });
  return { roster, nodes, directory, reconciler, follower, hostUpstreams };
}

/** Where containers reach the engine's host unless somebody says otherwise: the default bridge's side of it. */
async function learnHostGateway(engine: Engine): Promise<string | undefined> {
  try {
    const json = await engine.network("bridge");
    return (json?.IPAM?.Config ?? []).map(gatewayOf).find((gateway) => gateway !== undefined);
  } catch {
    // Nodes have other ways to be reached, and the next connection asks again.
    return undefined;
  }
}

/** An engine that has just been started may not tell its own side of the bridge: it is the first address. */
function gatewayOf({ Gateway: gateway, Subnet: subnet }: { Gateway?: string; Subnet?: string }): string | undefined {
  return gateway ?? /^(\d+\.\d+\.\d+)\.0\//.exec(subnet ?? "")?.[1]?.concat(".1");
}

/** Nodes that a killed instance left, and that are none by now. Another start of a container undoes everything by itself. */
function undoOldNodes(
  { journal, bracket, memory, host }: ComposeParts,
  { directory, nodes }: Pick<ContainerWay, "directory" | "nodes">,
): object[] {
  return journal.all().records.flatMap((record) => {
    const fact = directory.containers.get(record.containerId);
    const isRunning = fact?.startedAt === record.startedAt;
    if (isRunning && nodes.isNode(fact)) return [];
    const { did, isWhole } = isRunning ? undoNode(record, { bracket, memory, host: host() }) : NOTHING_TO_UNDO;
    if (isWhole) journal.remove(record.containerId);
    return did.length === 0 ? [] : [{ node: record.name, did }];
  });
}

/** Docker uses three servers of a list and says nothing of the others. */
function serversMax({ behaviour }: RunSettings): number {
  return behaviour.failsOver ? LIMITS.upstreamServers : LIMITS.forwardServers;
}
