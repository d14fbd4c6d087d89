/**
 * EngineSide: the container side for all containers of an engine: watch -> registry -> roster -> attach. The answerer
 * reads the registry's names through the view of each endpoint. Sockets made in a namespace go to the listeners.
 */
import { allDone, type Latch } from "../../base/lib/async.ts";
import { eventLogger } from "../../base/log/log.ts";
import { inSlices, ownSlice } from "../../base/lib/slices.ts";
import type { FeatureEntry } from "../../config/feature-entry.ts";
import type { RunSettings } from "../../config/settings.ts";
import { FEATURES } from "../../features.ts";
import type { AttachMode, Attaching } from "../../container/attach/attach-mode.ts";
import type { Decision } from "../../container/attach/decision.ts";
import { Reconciler } from "../../container/attach/reconciler.ts";
import type { LockWait } from "../../container/attach/attachment-parts.ts";
import type { AttachmentState } from "../../container/attach/attachment-state.ts";
import { ContainerLinks } from "../../container/links/container-links.ts";
import type { SharedNames } from "../../container/names/name-sources.ts";
import { ClusterDns } from "../../container/watch/cluster-dns.ts";
import { type NamespaceClaim, type ProvenNamespace, proveNamespace } from "../../container/namespace/proof.ts";
import type { SandboxBirths } from "../../container/namespace/sandbox-births.ts";
import { Directory } from "../../container/registry/directory.ts";
import type { ContainerFact, NetworkFact } from "../../container/facts/fact.ts";
import { labelKeysOf } from "../../container/facts/label-keys.ts";
import { Roster } from "../../container/roster.ts";
import { zoneAllocator } from "../../container/rules/owned-tables.ts";
import { ContainerFilesReader } from "../../container/watch/container-files.ts";
import { Follower } from "../../container/watch/follower.ts";
import { HostUpstreams } from "../../container/watch/host-upstreams.ts";
import type { ControlPorts } from "../../control/situation/ports.ts";
import type { EngineCore, Outsiders, OwnNamespace, Policing, Running } from "../../features/contract.ts";
import { dialIn } from "../../container/namespace/dial.ts";
import { descriptorsMax } from "../../kernel/descriptors.ts";
import { LIMITS } from "../../base/limits.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import type { NameSettings } from "../../container/names/source/name-settings.ts";
import { networkFact } from "../../container/watch/translate.ts";
import type { ContainerSide, ContainerSideParts } from "../container-side.ts";
import { containersOf, insideOf, repairsOf, nodeDial } from "./engine-ports.ts";
import type { EngineAccess } from "./engine-link.ts";
import { EngineEvents, AttachmentLog } from "./engine-events.ts";
import { EngineNetworks, hostGateway } from "./engine-networks.ts";
import { restoreLeft } from "./left-changes.ts";
import { openBirths, startingHooks } from "./starting-containers.ts";
import { StoppedContainers } from "./stopped-containers.ts";

/** What a directory knows from elsewhere. */
interface DirectoryParts {
  readonly shared: SharedNames | undefined;
  readonly features: readonly Running[];
  readonly clusterDnsOf: (fact: ContainerFact) => string | undefined;
  readonly onNames?: () => void;
}

export class EngineSide implements ContainerSide {
  readonly containers: ControlPorts["containers"];
  readonly repairs: ControlPorts["repairs"];
  readonly inside: ControlPorts["inside"];
  readonly reconciler: Reconciler;
  readonly roster: Roster;
  readonly hostUpstreams: HostUpstreams;
  readonly files: ContainerFilesReader;
  readonly follower: Follower;
  readonly synced: Latch;
  readonly stopped: StoppedContainers;
  readonly networks: EngineNetworks;
  /** Whoever needs them starts them. */
  readonly links: ContainerLinks;
  readonly features: readonly Running[];
  readonly policing: Policing | undefined;
  readonly births: SandboxBirths;
  readonly #events: EngineEvents;
  readonly #log: AttachmentLog;
  readonly #parts: ContainerSideParts;
  readonly #link: EngineAccess;
  readonly #clusterDns: ClusterDns;
  #directory: Directory;
  #isDisconnected = false;

  constructor(parts: ContainerSideParts, link: EngineAccess) {
    this.#parts = parts;
    this.#link = link;
    this.#clusterDns = new ClusterDns({ host: link.host, onFound: () => this.refresh() });
    this.features = parts.features ?? [];
    // In reverse order of the pipeline: a receiver is built before its sender.
    this.#directory = this.#openDirectory();
    this.stopped = new StoppedContainers(link.engine, (id) => this.directory.containers.has(id));
    this.networks = new EngineNetworks(link.engine);
    const { runner, memory } = parts.platform;
    const { host } = link;
    this.links = new ContainerLinks({
      ...{ runner, memory, host },
      prove: (claim) => proveNamespace(claim, host(), runner.homeId),
      networkOf: (id) => this.directory.network(id),
    });
    this.#openFeatures();
    this.policing = this.features.find(({ policing }) => policing !== undefined)?.policing;
    const factOf = (id: string): ContainerFact | undefined => this.directory.containers.get(id);
    this.#log = new AttachmentLog({ ...parts, factOf, unserved: (id) => this.namespaceOf(id)?.unserved });
    this.#events = new EngineEvents({
      events: parts.events,
      factOf,
      isSynced: () => this.synced.isOpen,
    });
    this.reconciler = this.#openReconciler();
    this.roster = this.#openRoster();
    this.hostUpstreams = this.#openHostUpstreams();
    this.directory.setHost(this.hostUpstreams.servers);
    this.files = new ContainerFilesReader({
      host: link.host,
      upstreams: this.hostUpstreams,
      reinspect: (ids) => this.follower.reinspect(ids),
    });
    link.engine.labels.add(labelKeysIn(parts.settings));
    link.engine.readStep = (id, step) => parts.quarantines.recorder.inspecting(id, step);
    this.births = openBirths(this, link);
    this.follower = this.#openFollower();
    this.synced = this.follower.synced;
    this.containers = containersOf(this, parts);
    this.repairs = repairsOf(this, parts.quarantines);
    this.inside = insideOf(link, parts.platform, {
      hostServers: () => this.hostUpstreams.listed,
      namespaceOf: (id) => this.namespaceOf(id),
      outsiders: () => this.outsiders(),
    });
  }

  get engine(): ContainerSide["engine"] {
    const { info, socketPath: address } = this.#link;
    return { id: info.id, version: info.version, address, isConnected: this.follower.isConnected };
  }

  async engineSilentMs(): Promise<number | undefined> {
    return await this.#link.engine.silentMs();
  }

  /** The current one: a reload replaces it. */
  get directory(): Directory {
    return this.#directory;
  }

  get isSettled(): boolean {
    const areSettled = this.features.every((each) => each.isSettled !== false);
    return this.roster.isRefreshed && this.reconciler.isSettled && areSettled;
  }

  /** Those of features that are to be served. */
  get ownNamespaces(): readonly OwnNamespace[] {
    return this.features.flatMap(({ namespace }) => (namespace?.isOn === true ? namespace : []));
  }

  /** Whether rules may redirect what is sent from the engine's host. */
  get isHostCaptured(): boolean {
    return this.ownNamespaces.length > 0;
  }

  /** Undefined for the ID of a container. */
  namespaceOf(id: string): OwnNamespace | undefined {
    return this.features.find(({ namespace }) => namespace?.fact.id === id)?.namespace;
  }

  get areAllKnown(): boolean {
    return this.follower.unknown.size === 0;
  }

  get lastActivityMs(): number {
    return this.follower.lastActivityMs;
  }

  async prepare(settings: RunSettings, shared?: SharedNames): Promise<() => void> {
    await this.follower.learnLabels(labelKeysIn(settings));
    const next = newDirectory(settings, {
      shared,
      features: this.features,
      clusterDnsOf: (fact) => this.#clusterDns.addressOf(fact),
    });
    // What has changed meanwhile follows, until nothing has.
    while ((await inSlices(next.catchUp(this.#directory))) > 0);
    // What the last slice took is not part of the round in which everything changes.
    await ownSlice();
    return () => {
      this.#succeedBy(next);
      this.roster.setDefaultBridge(settings.defaultBridge);
      this.roster.setOnly(settings.only, settings.labels);
      if (this.hostUpstreams.configure(settings)) this.follower.reinspect();
      this.roster.refresh();
      // Each goes through all containers.
      const refreshed = this.refreshed();
      void refreshed.then(ownSlice).then(() => next.forgetPredecessor());
      this.viewsChanged();
    };
  }

  async refreshed(): Promise<void> {
    await this.roster.refreshed();
  }

  refresh(): void {
    this.roster.refresh();
    this.viewsChanged();
  }

  /** What others than containers see: these are decided about one by one. */
  viewsChanged(): void {
    for (const each of this.features) each.viewsChanged?.();
  }

  async follow(signal: AbortSignal): Promise<void> {
    await this.follower.run(signal);
  }

  async pause(): Promise<void> {
    // These may wait for a lock of the host. Containers are served meanwhile.
    await allDone(this.features.map(async (each) => await each.pause?.()));
    await this.reconciler.pause();
  }

  resume(): void {
    for (const each of [this.reconciler, ...this.features]) each.resume?.();
  }

  async abandon(): Promise<void> {
    await Promise.all([this.reconciler.abandon(), ...this.features.map(async (each) => await each.stop?.(true))]);
    this.#closeFiles();
  }

  async stop(): Promise<void> {
    await this.reconciler.stop();
    // Last: Docker's resolver may forward to them what it is given back.
    await Promise.all(this.features.map(async (each) => await each.stop?.(false)));
    this.#closeFiles();
  }

  #closeFiles(): void {
    for (const each of [this.hostUpstreams, this.files, this.policing, this.births, this.links, this.#clusterDns])
      each?.close();
  }

  outsiders(): readonly Outsiders[] {
    return this.features.flatMap(({ outsiders }) => outsiders ?? []);
  }

  #openFeatures(): void {
    const { platform, querySide, quarantines, journal, hold: keep, inherit, startAfter } = this.#parts;
    const { engine, host, info } = this.#link;
    const { openSharedEndpoint, openSubnetEndpoint } = querySide;
    const core: EngineCore = {
      ...platform,
      ...{ host, keep, inherit, startAfter, journal, openSharedEndpoint, openSubnetEndpoint },
      isRootless: info.isRootless,
      api: engine,
      engineVersion: () => this.#link.info.majorVersion,
      listNetworks: async () => (await engine.networks()).map(networkFact),
      areAllKnown: () => this.areAllKnown,
      serve: (fact) => this.#serve(fact),
      reinspect: (id) => this.follower.reinspect([id]),
      links: this.links,
      hostServers: () => this.hostUpstreams,
      updateViews: () => this.refresh(),
      reconciler: () => this.reconciler,
      learnLabel: async (key) => await this.follower.learnLabels([key]),
      directory: () => this.directory,
      putNetwork: (fact) => this.putNetwork(fact),
      roster: () => this.roster,
      quarantineOf: quarantines.reasonFor,
      searchListOf: (fact) => firstOf(this.features, (each) => each.searchListOf?.(fact)),
      dialFromHost: (server, type) => dialIn(platform.runner, host().network, server, type, this.isHostCaptured),
    };
    for (const each of this.features) each.engine?.(core);
  }

  #openDirectory(): Directory {
    const { settings, shared } = this.#parts;
    const directory = newDirectory(settings, {
      shared,
      features: this.features,
      clusterDnsOf: (fact) => this.#clusterDns.addressOf(fact),
      onNames: () => {
        for (const each of this.features) each.answersEnd?.();
      },
    });
    directory.setComplete(false);
    return directory;
  }

  #succeedBy(next: Directory): void {
    for (const _ of next.catchUp(this.#directory));
    next.succeed(this.#directory);
    this.#directory = next;
  }

  #openReconciler(): Reconciler {
    const { platform, hold, inherit, disinherit, refusing, startAfter, querySide, quarantines, counts } = this.#parts;
    const { host } = this.#link;
    return new Reconciler(
      {
        ...platform,
        host,
        prove: (claim: NamespaceClaim): ProvenNamespace =>
          this.namespaceOf(claim.containerId)?.open(claim) ?? proveNamespace(claim, host(), platform.runner.homeId),
        isHostCaptured: () => this.isHostCaptured,
        dialInNode: nodeDial({ containers: () => this.directory.containers.values(), host, runner: platform.runner }),
        nextZone: zoneAllocator(),
        openEndpointFor: querySide.openEndpointFor,
        keep: hold,
        ...{ inherit, disinherit },
        refusing,
        extra: this.features.find(({ extra }) => extra !== undefined)?.extra,
        isEnforced: (id) => this.policing?.isEnforcedNow(id) === true,
        onLeft: (id) => this.policing?.isEnforced(id) === true && this.#log.onLeft(this.#nameOf(id)),
        startAfter,
        isSuspect: quarantines.isSuspect,
        runAttach: async (id, work) => await quarantines.recorder.attaching(id, work),
        onLocked: (id, wait) => this.#onLocked(id, wait),
        descriptorsMax: descriptorsMax(),
        onServing: (id, counters, isServing) =>
          isServing ? counts.startCounting(this.#nameOf(id), counters) : counts.stopCounting(counters),
      },
      (id, state) => this.#onState(id, state),
    );
  }

  #openRoster(): Roster {
    const { quarantines, limitedLog, settings } = this.#parts;
    return new Roster({
      directory: () => this.#directory,
      reconciler: this.reconciler,
      only: settings.only,
      quarantineOf: quarantines.reasonFor,
      isEnforced: (id) => this.policing?.isEnforced(id) === true,
      labelPolicy: settings.labels,
      defaultBridge: settings.defaultBridge,
      labelWarnings: (...about) => this.features.flatMap((each) => each.labelWarnings?.(...about) ?? []),
      nodeContextOf: (fact) => firstOf(this.features, (each) => each.nodeContextOf?.(fact)),
      decide: (fact, decision) =>
        this.features.reduce((before, each) => each.decide?.(fact, before) ?? before, decision),
      attach: (...decided) => this.#attach(...decided),
      onOthers: () => this.viewsChanged(),
      onDecided: (id) => {
        for (const each of this.features) each.decided?.(id);
      },
      onWarning: ({ name: container }, warning) =>
        limitedLog.log("warn", container, { container, warning }, "container has a configuration problem"),
    });
  }

  /** One feature after the other. */
  #attach(fact: ContainerFact, decision: Decision, usual: AttachMode | undefined): Attaching {
    let mode = usual;
    const warnings: string[] = [];
    for (const each of this.features) {
      const other = each.attach?.(fact, decision, mode);
      if (other === undefined) continue;
      ({ mode } = other);
      if (other.warning !== undefined) warnings.push(other.warning);
    }
    return { mode, warning: warnings.length === 0 ? undefined : warnings.join("; ") };
  }

  #openHostUpstreams(): HostUpstreams {
    const { log, querySide, settings } = this.#parts;
    return new HostUpstreams(
      {
        onEvent: eventLogger(log),
        host: this.#link.host,
        engineVersion: () => this.#link.info.majorVersion,
        onChange: (servers) => {
          this.directory.setHost(servers);
          this.roster.refresh();
          querySide.onUpstreamsChanged();
          for (const each of this.features) each.hostServersChanged?.();
          this.viewsChanged();
        },
        reinspect: (ids) => this.follower.reinspect(ids),
      },
      settings,
    );
  }

  #openFollower(): Follower {
    const { counts, log, quarantines, querySide, limitedLog, events } = this.#parts;
    return new Follower(this.#link.engine, {
      onConnected: (info) => {
        this.#link.accept(info);
        if (this.#isDisconnected)
          limitedLog.log("info", "", { version: info.version }, "reconnected to the engine", { topic: "engine" });
        if (this.#isDisconnected) events.record({ kind: "engine-connected", detail: info.version });
        this.#isDisconnected = false;
        this.hostUpstreams.reread();
        this.links.hostChanged();
        for (const each of this.features) each.engineConnected?.();
        void this.#refreshHostGateway();
      },
      onDisconnected: (reason) => {
        counts.engineLosses++;
        if (!this.#isDisconnected) events.record({ kind: "engine-lost", detail: reason });
        this.#isDisconnected = true;
        limitedLog.log("warn", "", { reason }, "lost the connection to the engine, serving the last known names", {
          topic: "engine",
        });
      },
      onEventApplied: (lagMs) => counts.eventLag.add(0, lagMs / 1_000),
      onSynced: () => {
        log.info({ containers: this.directory.containers.size }, "loaded the running containers");
        if (this.directory.setComplete(true)) this.roster.refresh();
        for (const each of this.features) each.synced?.();
        void this.#restoreLeftovers();
      },
      onNetwork: (fact) => this.putNetwork(fact),
      onNetworkGone: (id) => this.removeNetwork(id),
      onNetworkEvent: (name, isCreated) => {
        this.#events.onNetwork(name, isCreated);
        this.policing?.networksChanged();
      },
      onContainer: (fact) => this.put(fact, this.#followers),
      onContainerGone: (id, ending) => {
        this.#events.onGone(id, ending);
        querySide.histories.name(id, this.#nameOf(id));
        querySide.failures.name(id, this.#nameOf(id));
        this.stopped.forget(id);
        this.roster.remove(id);
        this.#clusterDns.forget(id);
        for (const each of this.#followers) each.remove?.(id);
        this.#containersChange();
      },
      stopped: {
        known: () => this.directory.names.stoppedIds,
        put: (fact) => this.directory.putStopped(fact),
        remove: (id) => this.directory.removeStopped(id),
      },
      ...(this.policing !== undefined && { late: this.policing.late }),
      starting: startingHooks(this, this.births, () => this.policing?.isOn === true),
      barredBy: quarantines.inspectionBarredBy,
      onInspectFailed: (id, reason) => {
        counts.inspectFailures++;
        const container = this.#nameOf(id);
        limitedLog.log("warn", container, { container, reason }, "cannot inspect container, retrying");
      },
      filesOf: (json) => this.files.read(json),
      known: () => this.directory.containers,
      hasNetwork: (id) => this.directory.network(id) !== undefined,
      knownNetworks: () => [...this.directory.networks()].map(({ id }) => id),
    });
  }

  /** There are new facts about a container. */
  put(fact: ContainerFact, followers: readonly Pick<Running, "put">[]): void {
    this.#events.onContainer(fact);
    this.#serve(fact, followers);
  }

  #containersChange(): void {
    for (const each of this.features) each.containersChange?.();
  }

  #serve(fact: ContainerFact, followers: readonly Pick<Running, "put">[] = []): void {
    this.#containersChange();
    this.#parts.quarantines.recorder.deciding(fact.id, () => this.roster.put(fact));
    for (const each of followers) each.put?.(fact);
  }

  putNetwork(fact: NetworkFact): void {
    this.directory.putNetwork(fact);
    this.#networksChanged();
  }

  removeNetwork(id: string): void {
    this.directory.removeNetwork(id);
    this.#networksChanged();
  }

  #networksChanged(): void {
    this.viewsChanged();
    // Whoever asks from elsewhere is on a network, or no longer.
    if (this.outsiders().some(({ facts }) => facts.length > 0)) this.#containersChange();
  }

  /** They learn of each container behind the roster. */
  get #followers(): readonly Pick<Running, "put" | "remove">[] {
    return [...this.features, this.links];
  }

  #nameOf(id: string): string {
    return this.directory.containers.get(id)?.name ?? id.slice(0, 12);
  }

  #onState(id: string, state: AttachmentState): void {
    const wasFailed = this.#parts.counts.onState(id, state);
    this.#events.onState(id, state);
    this.#log.onState(id, this.#nameOf(id), state, wasFailed);
  }

  /** Nobody waits with a container whose rules are locked. One that locks them again and again is left to Docker's resolver. */
  #onLocked(id: string, wait: LockWait): void {
    this.#log.onLocked(this.#nameOf(id), wait);
    const isCharged = wait.isWaiting && wait.isOwn && this.namespaceOf(id) === undefined;
    if (isCharged && this.#parts.quarantines.chargeLock(id)) this.roster.refresh();
  }

  async #refreshHostGateway(): Promise<void> {
    const gateway = await hostGateway(this.#link.engine);
    if (this.directory.names.engineHost.setGateway(gateway)) this.roster.refresh();
  }

  /** Waits first, because what another process still serves is not left behind. */
  async #restoreLeftovers(): Promise<void> {
    await this.#parts.startAfter;
    for (const line of await restoreLeft(this, this.#link, this.#parts))
      this.#parts.log.info(line, "removed leftovers of a previous run");
  }
}

/** The labels by which settings choose containers. */
function labelKeysIn(settings: RunSettings): string[] {
  return [...labelKeysOf(settings.only), ...FEATURES.flatMap((each: FeatureEntry) => each.labelKeys?.(settings) ?? [])];
}

/** What the first of the features says that knows it. */
function firstOf<T>(features: readonly Running[], read: (each: Running) => T | undefined): T | undefined {
  for (const each of features) {
    const found = read(each);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A directory with what the settings mean for the names and servers of containers. Each reload makes one. */
function newDirectory(settings: RunSettings, { shared, features, clusterDnsOf, onNames }: DirectoryParts): Directory {
  return new Directory({
    serversMax: serversMax(settings),
    ownAddress: DOCKER_RESOLVER,
    replacesDocker: settings.behaviour.failsOver,
    leavesToDocker: true,
    names: nameSettings(settings),
    rules: settings.routes,
    missingContainer: settings.upstream.forward.missingContainer,
    makeNames: (context) => features.flatMap((each) => each.makeNames?.(settings, context) ?? []),
    featureRoutes: () => features.flatMap((each) => each.domainServers ?? []),
    shared,
    clusterDnsOf,
    ...(onNames !== undefined && { onNames }),
  });
}

/** Docker ignores health checks. */
function nameSettings(settings: RunSettings): NameSettings {
  const { isStrict, labels, hostName } = settings;
  const always = { labels, hostName };
  return isStrict
    ? { ...always, health: undefined, choices: undefined }
    : { ...always, health: settings.health, choices: settings.names };
}

/** Docker uses three servers of a list and ignores the others. */
function serversMax({ behaviour }: RunSettings): number {
  return behaviour.failsOver ? LIMITS.upstreamServers : LIMITS.forwardServers;
}
