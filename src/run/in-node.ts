/**
 * InNode: dns11 inside a KIND node, for those who bake it into a node's image: no engine, one namespace, which is our own,
 * and Docker's resolver behind us for everything. It stays, or it makes rules once and goes.
 */
import { randomInt } from "node:crypto";
import { openSync } from "node:fs";

import { LIMITS } from "../config/limits.ts";
import type { RunSettings } from "../config/settings.ts";
import { Reconciler } from "../container/attach/reconciler.ts";
import { DOCKER_RESOLVER } from "../container/capture/capture.ts";
import { examineNode } from "../doctor/kind/node-check.ts";
import { FILES_HERE, NODE_HERE, dockerListening, nodeHere } from "../container/kind/here.ts";
import { Journal } from "../container/kind/journal.ts";
import { dockerResolver } from "../container/kind/docker-resolver.ts";
import type { NodeFact } from "../container/kind/node-fact.ts";
import { NodeMode } from "../container/kind/node-mode.ts";
import { NodeResolver } from "../container/kind/node-resolver.ts";
import { nodePlaceOf } from "../container/kind/nodes.ts";
import { undoIn, undoResolvConf } from "../container/kind/undo.ts";
import { Bracket, warmThreadPool } from "../container/namespace/bracket.ts";
import { closeEngineHost, openEngineHost } from "../container/namespace/engine-host.ts";
import { Directory } from "../container/registry/directory.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import { splitLabels } from "../container/registry/labels.ts";
import { makeLasting, removeLasting } from "../container/rules/install.ts";
import { type PlanInput, servingPlan } from "../container/rules/plan.ts";
import { TRIAL_MARK } from "../container/rules/probe.ts";
import { refuseServed } from "../container/rules/standing.ts";
import { zones } from "../container/rules/zones.ts";
import { DOOR_MARK } from "../container/namespace/dial.ts";
import { threadCapabilities } from "../kernel/capabilities.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { Fault, reasonOf } from "../lib/fault.ts";
import type { KindPolicy } from "../model/kind-policy.ts";
import type { RuleTier } from "../model/rule-tier.ts";
import type { Log } from "../observe/log.ts";
import { descriptorsMax } from "../kernel/descriptors.ts";
import { Control } from "../control/control.ts";
import { VERSION } from "./daemon.ts";
import type { NodeDiagnosis } from "../doctor/kind/doctor.ts";
import { HangGuard } from "./hang-guard.ts";
import { instanceFolder, takeInstance } from "../instance/instance.ts";
import { keepHeapSmall } from "./heap.ts";
import { checkCapabilities } from "../container/preflight.ts";
import { QueryLog } from "../control/query-log.ts";
import { QueryReader } from "../control/query-reader.ts";
import { queryRoutes } from "../control/query-routes.ts";
import { chooseMeans, warnOfMeans } from "../container/attach/rule-means.ts";
import { Repeats } from "../observe/repeats.ts";
import { Defects } from "./defects.ts";
import { composeQueryWay } from "./query-way.ts";
import { type Status, containerStatus } from "../control/status.ts";

/** In the place of an engine's id. */
const INSTANCE = "node";
/** How often the node's place in its networks is looked at: nobody tells of it in here. */
const LOOK_EVERY_MS = 2_000;
const THREAD_NAMESPACE = "/proc/thread-self/ns/net";

/** Serves the node's pods until `signal`; where somebody else serves them already, waits until that is over. */
export async function stayInNode(settings: RunSettings, log: Log, signal: AbortSignal): Promise<void> {
  checkCapabilities();
  keepHeapSmall();
  await warmThreadPool();
  const bracket = new Bracket();
  const memory = new NetlinkMemory();
  const means = chooseMeans(bracket, memory, settings.rules);
  warnOfMeans(means, log);
  const instance = takeInstance(settings.stateDir, INSTANCE);
  const host = openEngineHost(process.pid);
  const repeats = new Repeats(log);
  const { openEndpointFor, book, meter } = composeQueryWay(settings, log, repeats);
  let lastFailure = "";
  const reconciler = new Reconciler(
    {
      bracket,
      memory,
      means,
      host: () => host,
      prove: () => ({ fd: openSync(THREAD_NAMESPACE, "r"), id: bracket.homeId }),
      nextZone: zones(),
      descriptorsMax: descriptorsMax(),
      openEndpointFor,
    },
    (_, state) => {
      if (state.kind === "attached") log.info("serving the node and its pods");
      if (state.kind !== "failed" || state.reason === lastFailure) return;
      lastFailure = state.reason;
      log.warn({ code: state.code, reason: state.reason }, "not serving; trying again");
    },
  );
  const mode = modeHere(settings.kind, { bracket, memory, log, folder: instance.folder }, () =>
    reconciler.refit(NODE_HERE),
  );
  const directory = new Directory({ serversMax: LIMITS.upstreamServers, ownAddress: DOCKER_RESOLVER });
  directory.setRules(settings.routes);
  const container = containerHere(mode);
  const want = (): void => {
    const view = directory.viewOf(container, nodePlaceOf(settings.kind, mode.fact));
    reconciler.want(NODE_HERE, { claim: { containerId: NODE_HERE, sandboxKey: "", pid: process.pid }, mode, view });
  };
  const since = new Date().toISOString();
  const reader = new QueryReader(book, () => container.name);
  const queryLog = new QueryLog(reader, log);
  queryLog.setOn(settings.queries.isLogged);
  const control = await Control.listen(instance.controlPath, {
    ...queryRoutes({
      book,
      reader,
      find: (wanted) => {
        if (wanted === container.name) return NODE_HERE;
        throw new Fault("NO_SUCH_CONTAINER", `There is only the node in here, which is "${container.name}"`);
      },
      counters: () => ({
        containers: [...reconciler.attachments()].map(([, { counters }]) => ({
          container: container.name,
          counters: counters ?? {},
        })),
      }),
    }),
    "GET /v1/status": () => {
      const attachment = new Map(reconciler.attachments()).get(NODE_HERE);
      const view = directory.viewOf(container, nodePlaceOf(settings.kind, mode.fact));
      const node = containerStatus(container, { kind: "serve" }, attachment, view, mode.report());
      return statusHere(settings, means.tier, since, reconciler.isSettled, node);
    },
  });
  const guard = new HangGuard();
  const defects = new Defects({
    log,
    repeats,
    inWork: new Uint32Array(1),
    containerOf: () => undefined,
    onDefect: () => void meter.counts.defects++,
  });
  defects.begin();
  want();
  const timer = setInterval(() => {
    if (!mode.update(nodeHere(memory), settings.kind)) return;
    want();
    reconciler.refit(NODE_HERE);
  }, LOOK_EVERY_MS);
  try {
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  } finally {
    clearInterval(timer);
    log.info("handing back to Docker's resolver");
    await reconciler.stop();
    queryLog.stop();
    guard.stop();
    defects.end();
    repeats.close();
    control.close();
    instance.release();
    closeEngineHost(host);
    bracket.close();
  }
}

/** Leads pods to Docker's own resolver by rules that stay when we are gone; returns what was done and what was found. */
export async function serveOnce(settings: RunSettings, log: Log): Promise<string[]> {
  checkCapabilities();
  await warmThreadPool();
  const bracket = new Bracket();
  const memory = new NetlinkMemory();
  const folder = instanceFolder(settings.stateDir, INSTANCE);
  try {
    try {
      refuseServed(memory);
    } catch (error) {
      return [`nothing done: ${reasonOf(error)}`];
    }
    const docker = dockerListening();
    // Nobody of ours listens once we are gone, so pods are led to where Docker's resolver does: 127.0.0.11, IPv4 alone.
    const policy: KindPolicy = { ...settings.kind, way: "loopback", families: "ipv4" };
    const mode = modeHere(policy, { bracket, memory, log, folder }, () => undefined);
    const capture = mode.capture();
    const leads = capture.leads.filter(({ bind }) => bind === docker.address);
    const input: PlanInput = {
      capture: { ...capture, leads },
      listening: leads.map(() => docker),
      zone: randomInt(1, 0xffff),
      spared: [],
      doorMark: DOOR_MARK,
      trialMark: TRIAL_MARK,
    };
    makeLasting(memory, servingPlan(input));
    mode.publish();
    const { published, reasons } = mode.report();
    const findings = await examineHere(mode.fact, bracket, memory);
    return [
      `pods ask ${published.join(", ") || "nobody"}, led to Docker's resolver (udp ${docker.udpPort}, tcp ${docker.tcpPort})`,
      ...reasons,
      ...findings.filter(({ state }) => state !== "ok").map(({ what, detail }) => `${what}: ${detail}`),
    ];
  } finally {
    bracket.close();
  }
}

/** Takes back what `serveOnce` made, or what was left behind by one that stayed and was killed. */
export function undoInNode(stateDir: string): string[] {
  checkCapabilities();
  const memory = new NetlinkMemory();
  const instance = takeInstance(stateDir, INSTANCE);
  const lines = removeLasting(memory).map((title) => `removed ${title}`);
  const journal = new Journal(instance.folder);
  const { record } = journal.read(NODE_HERE);
  if (record !== undefined) {
    const { answering } = dockerResolver(memory);
    lines.push(...undoResolvConf(record, FILES_HERE.openWritten, answering), ...undoIn(record, memory));
    journal.remove(NODE_HERE);
  }
  instance.remove();
  return lines.length === 0 ? ["there was nothing to undo"] : lines;
}

interface ModeParts {
  readonly bracket: Bracket;
  readonly memory: NetlinkMemory;
  readonly log: Log;
  readonly folder: string;
}

function modeHere(policy: KindPolicy, { bracket, memory, log, folder }: ModeParts, onChange: () => void): NodeMode {
  return new NodeMode(nodeHere(memory), policy, {
    bracket,
    memory,
    journal: new Journal(folder),
    resolver: new NodeResolver(FILES_HERE),
    onChange,
    onNews: (about, text, level = "info") => log[level](about, text),
  });
}

/** What `dns11 kind doctor` finds where there is no engine to ask: the node that we are in ourselves. */
export async function diagnoseInNode(): Promise<NodeDiagnosis[]> {
  checkCapabilities();
  await warmThreadPool();
  const bracket = new Bracket();
  const memory = new NetlinkMemory();
  try {
    const fact = nodeHere(memory);
    return [{ node: fact.name, findings: await examineHere(fact, bracket, memory) }];
  } finally {
    bracket.close();
  }
}

async function examineHere(fact: NodeFact, bracket: Bracket, memory: NetlinkMemory): ReturnType<typeof examineNode> {
  const fd = openSync(THREAD_NAMESPACE, "r");
  try {
    const resolvConf = new NodeResolver(FILES_HERE).text();
    return await examineNode({ fact, fd, resolvConf }, { bracket, memory });
  } finally {
    closeQuietly(fd);
  }
}

/** The node as a container that is on no network that we know: everything is Docker's to answer. */
function containerHere({ fact }: NodeMode): ContainerFact {
  return {
    id: NODE_HERE,
    name: fact.name,
    startedAt: fact.startedAt,
    isPaused: false,
    pid: process.pid,
    sandboxKey: "",
    networkMode: "",
    ...splitLabels({}, {}),
    resolvConfPath: fact.resolvConfPath,
    kindSearch: fact.search,
    hostGateway: undefined,
    nameservers: { kind: "unknown" },
    endpoints: [],
  };
}

function statusHere(
  settings: RunSettings,
  tier: RuleTier,
  since: string,
  isReady: boolean,
  node: ReturnType<typeof containerStatus>,
): Status {
  return {
    version: VERSION,
    pid: process.pid,
    since,
    character: settings.isStrict ? "strict" : "better",
    tier,
    engine: null,
    config: settings.config ?? null,
    settings: settings.origins,
    isReady,
    memoryBytes: process.memoryUsage.rss(),
    capabilities: threadCapabilities(),
    metrics: null,
    containers: [node],
  };
}
