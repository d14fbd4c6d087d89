/**
 * NodeSide: the container side inside a KIND node, for node images that contain dns11: no engine, one namespace (our
 * own), and Docker's resolver as the only upstream.
 */
import { openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../base/limits.ts";
import type { RunSettings } from "../../config/settings.ts";
import { Reconciler } from "../../container/attach/reconciler.ts";
import type { AttachmentState } from "../../container/attach/attachment-state.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { IN_NODE_FILES, IN_NODE_ID, readInNodeFact } from "../../container/kind/in-node.ts";
import type { NodeFact } from "../../container/kind/node-fact.ts";
import { NodeMode } from "../../container/kind/node-mode.ts";
import { NodeResolvConf } from "../../container/kind/node-resolv-conf.ts";
import { nodePlaceOf } from "../../container/kind/nodes.ts";
import { type EngineHost, closeEngineHost, openEngineHost } from "../../container/namespace/engine-host.ts";
import { Directory } from "../../container/registry/directory.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { splitLabels } from "../../container/facts/labels.ts";
import { zoneAllocator } from "../../container/rules/owned-tables.ts";
import { parseResolvConf } from "../../container/watch/resolv-conf.ts";
import { type ControlPorts, NO_FEATURE_FIELDS } from "../../control/situation/ports.ts";
import { descriptorsMax } from "../../kernel/descriptors.ts";
import type { DeclaredName } from "../../base/model/declared-name.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import type { View } from "../../base/model/view.ts";
import type { ContainerSide, ServeTarget, ContainerSideParts } from "../container-side.ts";
import { openNamespace } from "../open-namespace.ts";
import { Quarantines } from "../quarantine/quarantines.ts";
import type { Journal } from "../../container/kind/journal.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { type Log, eventLogger } from "../../base/log/log.ts";

/** How often the node's network addresses are checked: nothing reports changes to a process inside the node. */
const CHECK_EVERY_MS = 2_000;

export async function findNode(): Promise<ServeTarget> {
  return await Promise.resolve({
    instanceId: NODE_INSTANCE_ID,
    hostName: "",
    isShared: true,
    // There is no other container to serve while this one is quarantined.
    openQuarantines: () => Quarantines.none(),
    compose: (parts: ContainerSideParts) => new NodeSide(parts),
    close: () => undefined,
  });
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
  /** It stays the same object unless the kind mode changes, which needs other sockets. */
  #mode: NodeMode;
  readonly #directory = new Directory({ serversMax: LIMITS.upstreamServers, ownAddress: DOCKER_RESOLVER });
  readonly #container: ContainerFact;
  #policy: KindPolicy;
  #lastFailure = "";
  #isUnreadable = false;

  constructor(parts: ContainerSideParts) {
    const { platform, settings } = parts;
    this.#parts = parts;
    this.#policy = settings.kind;
    this.#host = openEngineHost(process.pid);
    this.#reconciler = this.#openReconciler();
    this.#mode = this.#openMode(this.#policy);
    this.#directory.setRules(settings.routes);
    this.#container = containerOfNode(this.#mode);
    this.containers = {
      facts: new Map([[IN_NODE_ID, this.#container]]),
      decisionOf: () => ({ kind: "serve" }),
      attachmentOf: (id) => this.#reconciler.attachmentOf(id),
      clients: parts.querySide.clients,
      viewOf: () => this.#view(),
      defaultBridge: () => "off",
      nodeReportOf: () => this.#mode.report(),
      formerAddresses: () => [],
      formerNames: () => [],
      stopped: async () => await Promise.resolve([]),
      networks: async () => await Promise.resolve([]),
      swarm: undefined,
      ofFeatures: parts.ofFeatures ?? NO_FEATURE_FIELDS,
    };
    this.repairs = {
      repair: async (id) => (await this.#reconciler.repair(id)) ?? "not-served",
      setDetached: () => {
        throw new Fault("NOT_FROM_INSIDE", "A node that runs dns11 itself cannot be detached", {
          remedy: "Stop dns11 in the node instead.",
        });
      },
    };
    this.inside = {
      open: () => openNamespace(platform.runner, openSync(THREAD_NAMESPACE, "r")),
      resolvConfOf: () => parseResolvConf(new NodeResolvConf(IN_NODE_FILES).text() ?? ""),
    };
  }

  get isSettled(): boolean {
    return this.#reconciler.isSettled;
  }

  /** There is no engine to watch. */
  get lastActivityMs(): number {
    return performance.now();
  }

  async prepare(settings: RunSettings): Promise<() => void> {
    // It may fail, so it is made before anything is in force.
    const mode = settings.kind.mode === this.#policy.mode ? this.#mode : this.#openMode(settings.kind);
    return await Promise.resolve(() => {
      this.#policy = settings.kind;
      this.#mode = mode;
      this.#directory.setRules(settings.routes);
      this.#checkNetworks();
      this.refresh();
    });
  }

  async refreshed(): Promise<void> {
    await Promise.resolve();
  }

  declare(names: readonly DeclaredName[]): void {
    this.#directory.names.declared.set(names);
    this.refresh();
  }

  refresh(): void {
    const claim = { containerId: IN_NODE_ID, sandboxKey: "", pid: process.pid };
    this.#reconciler.setDesired(IN_NODE_ID, { claim, mode: this.#mode, view: this.#view() });
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

  #openMode(policy: KindPolicy): NodeMode {
    const { platform, journal, log } = this.#parts;
    return openNodeMode(policy, { ...platform, log, journal }, () => this.#reconciler.updateCapture(IN_NODE_ID));
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
          isServing ? counts.startCounting(this.#container.name, counters) : counts.stopCounting(counters),
      },
      (id, state) => this.#logState(id, state),
    );
  }

  #view(): View {
    return this.#directory.viewOf(this.#container, nodePlaceOf(this.#policy, this.#mode.fact));
  }

  /** Checks whether the node's network addresses have changed. */
  #checkNetworks(): void {
    if (!this.#mode.update(this.#factNow(), this.#policy)) return;
    this.refresh();
    this.#reconciler.updateCapture(IN_NODE_ID);
  }

  /** As it was last where it cannot be read: dns11 may be out of descriptors, or addresses may change faster than they are read. */
  #factNow(): NodeFact {
    const { platform, log } = this.#parts;
    try {
      const fact = readInNodeFact(platform.memory);
      this.#isUnreadable = false;
      return fact;
    } catch (error) {
      if (!this.#isUnreadable) log.warn({ reason: reasonOf(error) }, "cannot read the node's addresses, retrying");
      this.#isUnreadable = true;
      return this.#mode.fact;
    }
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

/** The node as a container on no known network: Docker answers everything. */
function containerOfNode({ fact }: NodeMode): ContainerFact {
  return {
    id: IN_NODE_ID,
    name: fact.name,
    startedAt: fact.startedAt,
    isPaused: false,
    health: undefined,
    pid: process.pid,
    sandboxKey: "",
    networkMode: "",
    hostname: "",
    domainName: "",
    ports: { published: [], exposed: [], ofImage: [] },
    ...splitLabels({}, {}),
    resolvConfPath: fact.resolvConfPath,
    kindSearch: fact.search,
    extraHosts: [],
    nameservers: { kind: "unknown" },
    endpoints: [],
    onDefaultBridge: undefined,
  };
}

/** Used instead of an engine's id. */
export const NODE_INSTANCE_ID = "node";
const THREAD_NAMESPACE = "/proc/thread-self/ns/net";

interface ModeParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly log: Log;
  readonly journal: Journal;
}

export function openNodeMode(policy: KindPolicy, { log, ...parts }: ModeParts, onChange: () => void): NodeMode {
  return new NodeMode(readInNodeFact(parts.memory), policy, {
    ...parts,
    resolvConf: new NodeResolvConf(IN_NODE_FILES),
    onChange,
    onEvent: eventLogger(log),
  });
}
