/**
 * Compose: where the two ways are built and meet, in the order of the drawing in ARCHITECTURE.md. The registry's names
 * are read by the answerer through the view that each endpoint holds; the sockets made in a namespace are handed to the
 * listeners.
 */
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";

import { LIMITS } from "../config/limits.ts";
import type { RunSettings } from "../config/settings.ts";
import { Reconciler } from "../container/attach/reconciler.ts";
import type { OpenEndpoint } from "../container/attach/ports.ts";
import { DOCKER_RESOLVER } from "../container/capture/capture.ts";
import type { Bracket } from "../container/namespace/bracket.ts";
import { type EngineHost, readEngineFile } from "../container/namespace/engine-host.ts";
import { Directory } from "../container/registry/directory.ts";
import type { NameserversFact } from "../container/registry/fact.ts";
import { Roster } from "../container/roster.ts";
import type { Engine, EngineInfo } from "../container/watch/engine.ts";
import { Follower } from "../container/watch/follower.ts";
import { nameserversOf, serversIn } from "../container/watch/nameservers.ts";
import type { ContainerJson } from "../container/watch/translate.ts";
import { MessageBlock } from "../kernel/message-block.ts";
import type { NetlinkMemory } from "../kernel/nfnetlink.ts";
import { type Log, Throttle } from "../observe/log.ts";
import { Answerer, SLOT_BYTES } from "../query/answer.ts";
import { SequentialForwarder } from "../query/forward/sequential.ts";
import { Endpoint } from "../query/listen/endpoint.ts";
import { streamBlock } from "../query/listen/tcp-connection.ts";
import { Turn } from "../query/listen/turn.ts";

export interface Composition {
  readonly roster: Roster;
  readonly directory: Directory;
  readonly reconciler: Reconciler;
  readonly follower: Follower;
}

export interface ComposeParts {
  readonly settings: RunSettings;
  readonly log: Log;
  readonly engine: Engine;
  readonly bracket: Bracket;
  readonly memory: NetlinkMemory;
  /** The engine's host as it is now; another one after the engine was restarted. */
  readonly host: () => EngineHost;
  readonly onEngine: (info: EngineInfo) => void;
  readonly engineVersion: () => number;
}

/** Engines from this version on write the servers of a container into its resolv.conf. */
const RECORDS_NAMESERVERS = 26;
const HOST_FILES = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/** Failures of servers and defects are told at most this often. */
const LOG_EVERY_MS = 10_000;

export function compose(parts: ComposeParts): Composition {
  const openEndpoint = composeQueryWay(parts);
  return composeContainerWay(parts, openEndpoint);
}

/** listen -> answer (wire, policy) -> forward. */
function composeQueryWay({ settings, log }: ComposeParts): OpenEndpoint {
  const { behaviour, isBatching } = settings;
  const failures = new Throttle(LOG_EVERY_MS);
  const defects = new Throttle(LOG_EVERY_MS);
  const onDefect = (error: unknown): void => {
    defects.run((heldBack) => log.error({ err: error, heldBack }, "a query laid bare a defect of dns11"));
  };
  const answerer = new Answerer(behaviour);
  const { forward } = new SequentialForwarder(
    behaviour,
    ({ from, address }, reason) => {
      failures.run((heldBack) => log.warn({ server: address, from, reason, heldBack }, "nameserver failed"));
    },
    Math.min(LIMITS.forwardQueriesWhole, descriptorsMax() * LIMITS.forwardShareOfDescriptors),
  );
  const common = { answerer, forward, onDefect };
  const udp = {
    ...common,
    block: new MessageBlock(LIMITS.udpBatch, SLOT_BYTES),
    turn: new Turn(),
    queryBytesMax: behaviour.readsLongQueries ? LIMITS.udpQueryBytes : LIMITS.udpQueryBytesStrict,
    isBatching,
  };
  const tcp = { ...common, pipelinedMax: behaviour.pipelines ? LIMITS.tcpPipelined : 1, block: streamBlock() };
  return (sockets, view, dial) => new Endpoint(sockets, { view, dial }, { udp, tcp });
}

/** watch -> registry -> attach (capture, namespace, rules). */
function composeContainerWay(parts: ComposeParts, openEndpoint: OpenEndpoint): Composition {
  const { settings, log, engine, bracket, memory, host, onEngine } = parts;
  const directory = new Directory({ serversMax: LIMITS.forwardServers, ownAddress: DOCKER_RESOLVER });
  directory.setRules(settings.routes);
  // A zone of a run before could hold entries that lead to its dead ports, so each run draws one.
  const zone = randomInt(1, 0xffff);
  const nameOf = (id: string): string => directory.containers.get(id)?.name ?? id.slice(0, 12);
  const reconciler = new Reconciler({ bracket, memory, host, zone, openEndpoint }, (id, state) => {
    if (state.kind === "attached") log.debug({ container: nameOf(id) }, "attached");
    if (state.kind === "failed") {
      const { code, reason, culprits } = state;
      log.warn({ container: nameOf(id), code, reason, culprits }, "not attached; Docker's resolver answers");
    }
  });
  const roster = new Roster({
    directory,
    reconciler,
    only: settings.only,
    onWarning: (fact, warning) => log.warn({ container: fact.name, warning }, "odd container"),
  });
  const follower = new Follower(engine, {
    onEngine,
    onAway: (reason) => log.warn({ reason }, "the engine is away; last-known names keep answering"),
    onSynced: () => log.info({ containers: directory.containers.size }, "every running container is known"),
    onNetwork: (fact) => directory.putNetwork(fact),
    onNetworkGone: (id) => directory.removeNetwork(id),
    onContainer: (fact) => roster.put(fact),
    onContainerGone: (id) => roster.remove(id),
    onInspectFailed: (id, reason) => log.warn({ container: nameOf(id), reason }, "cannot inspect; trying again"),
    nameserversOf: (json) => readNameservers(json, parts),
    known: () => directory.containers,
    hasNetwork: (id) => directory.network(id) !== undefined,
  });
  return { roster, directory, reconciler, follower };
}

/** How many files and sockets this process may have. */
function descriptorsMax(): number {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
}

function readNameservers(json: ContainerJson, { host, settings, engineVersion }: ComposeParts): NameserversFact {
  const engineHost = host();
  const path = json.ResolvConfPath;
  const hostFiles = settings.resolvConf === undefined ? HOST_FILES : [settings.resolvConf];
  return nameserversOf({
    resolvConf: path === undefined || path === "" ? undefined : readEngineFile(engineHost, path),
    hostServers: new Set(hostFiles.flatMap((file) => serversIn(readEngineFile(engineHost, file) ?? ""))),
    dns: json.HostConfig?.Dns ?? [],
    dnsOptions: json.HostConfig?.DnsOptions ?? [],
    isRecorded: engineVersion() >= RECORDS_NAMESERVERS,
  });
}
