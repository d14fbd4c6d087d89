/**
 * NodeSide: the container side inside of a cluster's node, for node images that contain dns11: no engine, one namespace (our own), and
 * Docker's resolver as the only upstream. What the node is, a feature says.
 */
import { openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { instanceFolder } from "../../api/state-paths.ts";
import { Fault } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import type { RunSettings } from "../../config/settings.ts";
import { Reconciler } from "../../container/attach/reconciler.ts";
import type { AttachmentState } from "../../container/attach/attachment-state.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { Journal } from "../../container/files/journal.ts";
import { NamespaceRunner, warmThreadPool } from "../../container/namespace/namespace-runner.ts";
import { type EngineHost, closeEngineHost, openEngineHost } from "../../container/namespace/engine-host.ts";
import type { SharedNames } from "../../container/names/name-sources.ts";
import { Directory } from "../../container/registry/directory.ts";
import { zoneAllocator } from "../../container/rules/owned-tables.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { type ControlPorts, NO_FEATURE_FIELDS } from "../../control/situation/ports.ts";
import { type Log, eventLogger } from "../../base/log/log.ts";
import type { InNode, OwnNode } from "../../features/contract.ts";
import { loadInNode } from "../../features/load.ts";
import { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { descriptorsMax } from "../../kernel/descriptors.ts";
import type { View } from "../../base/model/view.ts";
import type { ContainerSide, ServeTarget, ContainerSideParts } from "../container-side.ts";
import { openNamespace } from "../open-namespace.ts";
import { takeInstance } from "../instance.ts";
import { Quarantines } from "../quarantine/quarantines.ts";

/** How often the node's network addresses are checked: nothing reports changes to a process inside the node. */
const CHECK_EVERY_MS = 2_000;
/** Used instead of an engine's id. */
const NODE_INSTANCE_ID = "node";
const THREAD_NAMESPACE = "/proc/thread-self/ns/net";

async function inNode(): Promise<InNode> {
  const found = await loadInNode();
  if (found !== undefined) return found;
  throw new Fault("USAGE", "Nothing in this dns11 serves a node from inside of it");
}

export async function findNode(): Promise<ServeTarget> {
  const code = await inNode();
  return {
    instanceId: NODE_INSTANCE_ID,
    hostName: "",
    isShared: true,
    // There is no other container to serve while this one is quarantined.
    openQuarantines: () => Quarantines.none(),
    compose: (parts: ContainerSideParts) => new NodeSide(code, parts),
    close: () => undefined,
  };
}

/** Rules that remain after the program exits. */
export async function serveOnce(
  settings: RunSettings,
  log: Log,
): Promise<Awaited<ReturnType<InNode["serveOnce"]>> & Pick<InNode, "diagnose">> {
  checkCapabilities();
  await warmThreadPool();
  const code = await inNode();
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  const journal = new Journal(instanceFolder(settings.stateDir, NODE_INSTANCE_ID));
  try {
    const done = await code.serveOnce(settings, { runner, memory, journal, onEvent: eventLogger(log) });
    return { ...done, diagnose: async () => await code.diagnose() };
  } finally {
    runner.close();
  }
}

/** Undoes `serveOnce`, or what a killed run inside the node left behind. */
export async function undoNodeSetup(stateDir: string): Promise<readonly string[]> {
  checkCapabilities();
  const code = await inNode();
  const memory = new NetlinkMemory();
  const instance = takeInstance(stateDir, NODE_INSTANCE_ID);
  let lines;
  try {
    lines = await code.undo({ runner: new NamespaceRunner(), memory, journal: new Journal(instance.folder) });
  } catch (error) {
    instance.release();
    throw error;
  }
  instance.remove();
  return lines.length === 0 ? ["nothing to undo"] : lines;
}

class NodeSide implements ContainerSide {
  readonly containers: ControlPorts["containers"];
  readonly repairs: ControlPorts["repairs"];
  readonly inside: ControlPorts["inside"];
  readonly engine = null;
  readonly engineSilentMs = async (): Promise<undefined> => await Promise.resolve(undefined);
  readonly synced = { isOpen: true, passed: Promise.resolve() };
  readonly areAllKnown = true;
  readonly #parts: ContainerSideParts;
  readonly #host: EngineHost;
  readonly #reconciler: Reconciler;
  readonly #node: OwnNode;
  #directory: Directory;
  #lastFailure = "";

  constructor(code: InNode, parts: ContainerSideParts) {
    const { platform, settings, journal, log } = parts;
    this.#parts = parts;
    this.#host = openEngineHost(process.pid);
    this.#reconciler = this.#openReconciler();
    this.#node = code.open(settings, {
      ...platform,
      journal,
      onEvent: eventLogger(log),
      onChange: () => this.#reconciler.updateCapture(this.#node.fact.id),
    });
    this.#directory = newDirectory(settings, parts.shared);
    const { fact } = this.#node;
    const ofFeatures = parts.ofFeatures ?? NO_FEATURE_FIELDS;
    this.containers = {
      facts: new Map([[fact.id, fact]]),
      decisionOf: () => ({ kind: "serve" }),
      attachmentOf: (id) => this.#reconciler.attachmentOf(id),
      clients: parts.querySide.clients,
      viewOf: () => this.#view(),
      defaultBridge: () => "off",
      formerAddresses: () => [],
      formerNames: () => [],
      stopped: async () => await Promise.resolve([]),
      networks: async () => await Promise.resolve([]),
      elsewhere: undefined,
      ofFeatures: { ...ofFeatures, status: (id) => ({ ...ofFeatures.status(id), node: this.#node.report() }) },
    };
    this.repairs = { repair: async (id) => (await this.#reconciler.repair(id)) ?? "not-served" };
    this.inside = {
      open: () => openNamespace(platform.runner, openSync(THREAD_NAMESPACE, "r")),
      resolvConfOf: () => this.#node.resolvConf(),
    };
  }

  get isSettled(): boolean {
    return this.#reconciler.isSettled;
  }

  /** There is no engine to watch. */
  get lastActivityMs(): number {
    return performance.now();
  }

  async prepare(settings: RunSettings, shared?: SharedNames): Promise<() => void> {
    // It may fail, so it is made before anything is in force.
    const apply = this.#node.prepare(settings);
    return await Promise.resolve(() => {
      apply();
      this.#directory = newDirectory(settings, shared);
      this.#checkNetworks();
      this.refresh();
    });
  }

  async refreshed(): Promise<void> {
    await Promise.resolve();
  }

  refresh(): void {
    const { fact, mode } = this.#node;
    const claim = { containerId: fact.id, sandboxKey: fact.sandboxKey, pid: fact.pid };
    this.#reconciler.setDesired(fact.id, { claim, mode, view: this.#view() });
  }

  async follow(signal: AbortSignal): Promise<void> {
    this.refresh();
    while (!signal.aborted) {
      await sleep(CHECK_EVERY_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) this.#checkNetworks();
    }
  }

  async pause(): Promise<void> {
    await this.#reconciler.pause();
  }

  resume(): void {
    this.#reconciler.resume();
  }

  async abandon(): Promise<void> {
    await this.#reconciler.abandon();
    closeEngineHost(this.#host);
  }

  async stop(): Promise<void> {
    await this.#reconciler.stop();
    closeEngineHost(this.#host);
  }

  #openReconciler(): Reconciler {
    const { counts, platform, hold, inherit, startAfter, querySide } = this.#parts;
    return new Reconciler(
      {
        ...platform,
        host: () => this.#host,
        prove: () => ({ fd: openSync(THREAD_NAMESPACE, "r"), id: platform.runner.homeId }),
        nextZone: zoneAllocator(),
        descriptorsMax: descriptorsMax(),
        openEndpointFor: querySide.openEndpointFor,
        keep: hold,
        inherit,
        startAfter,
        onServing: (_, counters, isServing) =>
          isServing ? counts.startCounting(this.#node.fact.name, counters) : counts.stopCounting(counters),
      },
      (id, state) => this.#logState(id, state),
    );
  }

  #view(): View {
    return this.#directory.viewOf(this.#node.fact, this.#node.context);
  }

  /** Checks whether the node's network addresses have changed. */
  #checkNetworks(): void {
    if (!this.#node.reread()) return;
    this.refresh();
    this.#reconciler.updateCapture(this.#node.fact.id);
  }

  #logState(id: string, state: AttachmentState): void {
    const { counts, log } = this.#parts;
    counts.onState(id, state);
    if (state.kind === "attached") log.info("serving the node and its pods");
    if (state.kind !== "failed" || state.reason === this.#lastFailure) return;
    this.#lastFailure = state.reason;
    log.warn({ code: state.code, reason: state.reason }, "not serving the node, retrying");
  }
}

function newDirectory({ routes }: RunSettings, shared: SharedNames | undefined): Directory {
  return new Directory({
    serversMax: LIMITS.upstreamServers,
    ownAddress: DOCKER_RESOLVER,
    rules: routes,
    shared,
  });
}
