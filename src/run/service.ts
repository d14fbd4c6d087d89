/**
 * Service: a run from start to exit. Checks that may fail come first (platform, capabilities, kernel, engine, lock),
 * then the containers. Shutdown runs in reverse, and Docker's own resolver answers after each of its steps. Only here
 * do the query side and the container side meet.
 */
import { dirname } from "node:path";

import type { ReloadReport, Status } from "../api/status.ts";
import { controlPath, instanceFolder } from "../api/state-paths.ts";
import type { RunSettings } from "../config/settings.ts";
import { containerStates, containerStatuses } from "../control/reports/container-status.ts";
import { MetricsListener } from "../control/server/metrics-listener.ts";
import { monitoringRoutes } from "../control/routes/monitoring-routes.ts";
import { ProbePages } from "../control/explain/lookup.ts";
import { type Routes, holderOf, ControlSocket } from "../control/server/http.ts";
import type { ControlPorts } from "../control/situation/ports.ts";
import { routesOf } from "../control/routes/routes.ts";
import type { FeatureCode } from "../features/contract.ts";
import type { Predecessor } from "../keeper/predecessor.ts";
import { threadCapabilities } from "../kernel/capabilities.ts";
import { descriptorsMax } from "../kernel/descriptors.ts";
import { reasonOf } from "../base/lib/fault.ts";
import { latch } from "../base/lib/async.ts";
import { type Family, exposition } from "../metrics/exposition.ts";
import { familiesOf } from "../metrics/metrics.ts";
import type { Log } from "../base/log/log.ts";
import type { ContainerSide, FindServeTarget, ServeTarget } from "./container-side.ts";
import { InternalErrors } from "./internal-errors.ts";
import { type Platform, preparePlatform, VERSION } from "./platform.ts";
import { Handover } from "./handover.ts";
import { onceStarted } from "./heap.ts";
import { stateFault, takeInstance } from "./instance.ts";
import { Lifecycle, afterLameDuck, HangGuard } from "./lifecycle.ts";
import type { Quarantines } from "./quarantine/quarantines.ts";
import { ExclusiveResources } from "./exclusive-resources.ts";
import { type ReadSettings, type ReloadScope, Reloads, applySettings } from "./reloads.ts";
import { FolderWatches } from "../container/watch/folder-watch.ts";
import { type Serving, composeServing } from "./serving.ts";
import { RunKeeper } from "./run-keeper.ts";
import {
  endPredecessor,
  leftToSupervisor,
  takeOverFrom,
  isStartedBySupervised,
  isSupervised,
  startReplacement,
} from "./takeover.ts";

export class Service {
  readonly #log: Log;
  readonly #find: FindServeTarget;
  readonly #features: readonly FeatureCode[];
  readonly #reloads: Reloads;
  readonly #lifecycle: Lifecycle;
  readonly #metricsListener: MetricsListener;
  /** Folders of other programs that settings come from. A failed reload is in the log. */
  readonly #folders = new FolderWatches(() => void this.reload("folders").catch(() => undefined));
  readonly #probes = new ProbePages({
    probes: () => this.#reloads.settings.healthProbes,
    ports: () => this.#serving?.containerSide,
  });
  readonly #since = new Date();
  /** It is set from the start of serving until everything is handed back. */
  #serving: Serving | undefined;
  /** While a run is about to serve with the settings that it has read: resolves when it does, or has failed. */
  #starting: Promise<void> = Promise.resolve();

  /** `readSettings` reads the settings again. */
  constructor(
    settings: RunSettings,
    log: Log,
    readSettings: ReadSettings,
    find: FindServeTarget,
    features: readonly FeatureCode[],
  ) {
    this.#features = features;
    this.#log = log;
    this.#find = find;
    this.#lifecycle = new Lifecycle(process.env, log);
    this.#metricsListener = new MetricsListener(this.#monitoringRoutes(), log);
    this.#reloads = new Reloads({
      settings,
      readSettings,
      log,
      apply: async (next, before) => await this.#apply(next, before),
    });
  }

  /** Serves until `signal`, then hands everything back. Throws a Fault if it cannot start. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings } = this.#reloads;
    const platform = await preparePlatform(settings, this.#log);
    try {
      // With --replace, the process that serves now still has the listener.
      if (!settings.isReplacing) await this.#metricsListener.listen(settings.metrics);
      this.#lifecycle.begin();
      const onWait = (what: string): void => this.#lifecycle.setWaitingFor(what);
      const target = await this.#find({ settings, log: this.#log, signal, onWait });
      if (target !== undefined) await this.#serve(target, platform, signal);
    } finally {
      this.#lifecycle.end();
      this.#metricsListener.close();
      platform.runner.close();
    }
  }

  /**
   * Reads the settings file again and applies it. If it is invalid, the previous settings stay, and a Fault lists what is
   * wrong.
   */
  async reload(scope: ReloadScope = "all"): Promise<ReloadReport> {
    this.#lifecycle.reloading();
    try {
      const report = await this.#reloads.reload(scope);
      this.#folders.watch(this.#reloads.settings.folders);
      this.#serving?.events.record({ kind: "settings-reloaded", detail: report.changed.join(", ") || null });
      return report;
    } finally {
      this.#lifecycle.reloaded();
    }
  }

  /** Starts the program that is on disk as a second process, which takes over. */
  replace(): void {
    startReplacement(this.#log);
  }

  async #serve(target: ServeTarget, platform: Platform, signal: AbortSignal): Promise<void> {
    const { settings } = this.#reloads;
    const begun = latch();
    this.#starting = begun.passed;
    const folder = instanceFolder(settings.stateDir, target.instanceId);
    const quarantines = target.openQuarantines(folder);
    const handedOver = new AbortController();
    const keeperEvents = {
      onEvent: (about: object, text: string) => this.#log.warn(about, text),
      onHandoverRequested: () => handover.requested(),
      onHandoverCancelled: () => handover.cancelled(),
      onKeeperLost: () => handover.cancelled(),
      onHandoverCompleted: (successor: number) => handover.completed(successor),
    };
    const keeper = new RunKeeper(settings, platform, folder, keeperEvents);
    const attachGate = latch();
    const log = this.#log;
    const features = this.#features;
    const composeParts = {
      settings,
      log,
      features,
      platform,
      folder,
      quarantines,
      keeper,
      startAfter: attachGate.passed,
    };
    const serving = composeServing(target, composeParts);
    const resources = this.#resourcesOf(serving, { platform, quarantines }, target);
    const handover = new Handover({
      log: this.#log,
      containerSide: serving.containerSide,
      resources,
      keeper,
      onCompleted: (successor) => {
        this.#lifecycle.handOverTo(successor);
        handedOver.abort();
      },
    });
    try {
      const predecessor = await this.#predecessor(keeper, folder);
      if (predecessor === undefined) {
        await resources.acquire();
        // The process that has started this one ended before it could be taken over from.
        if (isStartedBySupervised()) throw leftToSupervisor();
        keeper.start();
        // Names of containers that are not known yet would go upstream. Docker's resolver knows them.
        void serving.containerSide.synced.passed.then(attachGate.open);
      }
      const stop = AbortSignal.any([this.#untilStopped(signal), handedOver.signal]);
      const parts = { log: this.#log, resources, keeper, containerSide: serving.containerSide };
      const takeover =
        predecessor && (async () => await takeOverFrom(predecessor, { ...parts, begin: attachGate.open }, stop));
      await this.#serveWith(serving, { folder, quarantines, handover, onServing: begun.open }, stop, takeover);
    } finally {
      begun.open();
      resources.release();
      target.close();
    }
  }

  /** What to take over from: a process that serves, with --replace, or a keeper that refuses queries alone. */
  async #predecessor(keeper: RunKeeper, folder: string): Promise<Predecessor | undefined> {
    const { isReplacing } = this.#reloads.settings;
    const predecessor = await keeper.findPredecessor(folder, isReplacing);
    if (predecessor === undefined || predecessor.isSameVersion) return predecessor;
    const isFollowed = isSupervised(predecessor.main);
    await endPredecessor(predecessor, this.#log);
    if (isFollowed) throw leftToSupervisor();
    // A process that ends leaves its keeper where policies are enforced.
    const left = await keeper.findPredecessor(folder, false);
    if (left !== undefined) await endPredecessor(left, this.#log);
    return undefined;
  }

  #resourcesOf(
    serving: Serving,
    { platform, quarantines }: { readonly platform: Platform; readonly quarantines: Quarantines },
    { instanceId, isShared }: ServeTarget,
  ): ExclusiveResources {
    const ports = this.#portsOf(serving, platform);
    const ofFeatures = serving.features.map((feature) => feature.routes?.(ports));
    const routes: Routes = Object.assign({ ...this.#monitoringRoutes(), ...routesOf(ports) }, ...ofFeatures);
    return new ExclusiveResources({
      takeInstance: () => {
        const { stateDir, isReplacing } = this.#reloads.settings;
        return takeInstance(stateDir, instanceId, isReplacing);
      },
      openControl: async (path) =>
        await ControlSocket.listen(path, routes, isShared).catch((error: unknown) => {
          throw stateFault(dirname(path), error);
        }),
      openMetrics: async () => await this.#metricsListener.listen(this.#reloads.settings.metrics),
      closeMetrics: () => this.#metricsListener.close(),
      startRecorder: () => quarantines.begin(),
      closeRecorder: () => quarantines.close(),
    });
  }

  /** Serves until `stop`. `takeover` runs before serving, while containers are already followed. */
  async #serveWith(
    serving: Serving,
    parts: {
      readonly folder: string;
      readonly quarantines: Quarantines;
      readonly handover: Handover;
      readonly onServing: () => void;
    },
    stop: AbortSignal,
    takeover: (() => Promise<void>) | undefined,
  ): Promise<void> {
    const { folder, quarantines, handover, onServing } = parts;
    const { querySide, containerSide, keeper, limitedLog, features, history, recordedCauses } = serving;
    const guard = new HangGuard({ isWatched: () => keeper.report.state === "watching" });
    const internalErrors = new InternalErrors({
      log: this.#log,
      limitedLog,
      containerOf: (client) => quarantines.recorder.containerOf(client)?.slice(0, 12),
      onInternalError: () => void querySide.meter.counts.defects++,
    });
    const failed = new AbortController();
    try {
      for (const each of features) await each.start?.();
      this.#folders.watch(this.#reloads.settings.folders);
      if (takeover === undefined) internalErrors.begin(quarantines.recorder.currentClient);
      const following = containerSide.follow(AbortSignal.any([stop, failed.signal]));
      if (takeover !== undefined) {
        await takeover().catch(async (error: unknown) => {
          failed.abort();
          await following;
          throw error;
        });
        internalErrors.begin(quarantines.recorder.currentClient);
      }
      for (const each of features) each.serving?.();
      quarantines.watch(() => containerSide.refresh());
      this.#lifecycle.setServing(() => ({
        isSynced: containerSide.synced.isOpen,
        isSettled: containerSide.isSettled,
        containers: () => containerStates(containerSide.containers),
        lastActivityMs: () => containerSide.lastActivityMs,
      }));
      this.#serving = serving;
      onServing();
      history.begin();
      recordedCauses.begin();
      this.#logServing(containerSide, controlPath(folder));
      onceStarted(
        () => containerSide.synced.isOpen && containerSide.isSettled,
        () => this.#warnIfServedElsewhere(containerSide),
      );
      await following;
    } finally {
      const isHandedOver = !handover.isServing;
      const closing = Promise.all(features.map(async (each) => await each.closing?.(isHandedOver)));
      if (!isHandedOver) {
        this.#lifecycle.stopping();
        this.#log.info("handing back to Docker's resolver");
        await containerSide.stop();
        keeper.end();
      } else {
        await containerSide.abandon();
        keeper.detach();
      }
      this.#folders.close();
      await closing;
      history.end();
      recordedCauses.end();
      await Promise.all(features.map(async (each) => await each.close?.()));
      guard.stop();
      internalErrors.end();
      limitedLog.close();
      this.#log.info("stopped");
    }
  }

  #logServing({ engine }: ContainerSide, control: string): void {
    const fields = engine === null ? {} : { engine: engine.id, version: engine.version, address: engine.address };
    this.#log.info({ ...fields, mode: this.#mode, control }, "serving");
  }

  /** After a stop signal: no longer ready, but serves on for the lame duck period. */
  #untilStopped(signal: AbortSignal): AbortSignal {
    return afterLameDuck(signal, () => {
      this.#lifecycle.stopping();
      const { lameDuckMs } = this.#reloads.settings;
      if (lameDuckMs > 0) this.#log.info({ ms: lameDuckMs }, "stopping; still serving for the lame duck period");
      return lameDuckMs;
    });
  }

  async #apply(settings: RunSettings, before: RunSettings): Promise<void> {
    await this.#starting;
    await this.#metricsListener.listen(settings.metrics);
    try {
      if (this.#serving !== undefined) await applySettings(this.#serving, settings);
    } catch (error) {
      await this.#metricsListener.listen(before.metrics).catch((fault: unknown) => {
        this.#log.warn({ reason: reasonOf(fault) }, "cannot restore the previous metrics listener");
      });
      throw error;
    }
  }

  #portsOf(serving: Serving, platform: Platform): ControlPorts {
    const { querySide, containerSide, reader } = serving;
    const { containers, repairs, inside } = containerSide;
    return {
      events: serving.events,
      history: serving.history,
      containers,
      repairs,
      inside,
      resolver: querySide.pipeline,
      histories: querySide.histories,
      reader,
      failures: querySide.failures,
      recordedCauses: serving.recordedCauses,
      settingsFile: () => this.#reloads.settings.config ?? null,
      status: async () => await this.#status(serving, platform),
      reload: async () => await this.reload(),
      holderOf,
      failuresOfFeatures: (isChosen) => Object.assign({}, ...serving.features.map((each) => each.failures?.(isChosen))),
    };
  }

  #monitoringRoutes(): ReturnType<typeof monitoringRoutes> {
    return monitoringRoutes({
      metrics: async () => await exposition(this.#families()),
      life: () => this.#lifecycle.report(),
      probe: async (page) => await this.#probes.get(page),
    });
  }

  #families(): Family[] {
    const { settings, done, failed } = this.#reloads;
    const base = {
      version: VERSION,
      settings: settings.origins,
      reloads: { done, failed },
      isReady: this.#lifecycle.isReady,
      descriptorsMax: descriptorsMax(),
    };
    if (this.#serving === undefined) return familiesOf(base);
    const { querySide, containerSide, counts } = this.#serving;
    const containers = containerStates(containerSide.containers);
    const isConnected = containerSide.engine?.isConnected;
    querySide.clients.collect();
    const readings = querySide.readings();
    const features = this.#serving.features.flatMap((feature) => feature.metrics?.() ?? []);
    const serving = {
      meter: querySide.meter,
      readings,
      counts,
      containers,
      isConnected,
      features,
    };
    return familiesOf({ ...base, serving });
  }

  async #status({ containerSide, keeper, features }: Serving, { report }: Platform): Promise<Status> {
    const { settings } = this.#reloads;
    // This comes before the containers: those of a run that is ready are attached or have a reason why not.
    const isReady = containerSide.synced.isOpen && containerSide.isSettled;
    const [containers, silentMs] = await Promise.all([
      containerStatuses(containerSide.containers),
      containerSide.engineSilentMs(),
    ]);
    const { engine } = containerSide;
    return {
      version: VERSION,
      pid: process.pid,
      since: this.#since.toISOString(),
      mode: this.#mode,
      ...report,
      engine: engine && { ...engine, ...(silentMs !== undefined && { silentMs: Math.round(silentMs) }) },
      config: settings.config ?? null,
      settings: settings.origins,
      ...(this.#reloads.afterRestart.length > 0 && { afterRestart: this.#reloads.afterRestart }),
      ...Object.assign({}, ...features.map((each) => each.status?.())),
      isReady,
      memoryBytes: process.memoryUsage.rss(),
      capabilities: threadCapabilities(),
      keeper: keeper.report,
      metrics: this.#metricsListener.address ?? null,
      containers,
    };
  }

  /** The lock of an instance is in its state directory, so one with another directory can start, and gets nothing to serve. */
  #warnIfServedElsewhere({ containers }: ContainerSide): void {
    const states = [...containers.facts.keys()].map((id) => containers.attachmentOf(id)?.state);
    const elsewhere = states.filter((state) => state?.kind === "failed" && state.code === "OWNED_ELSEWHERE").length;
    if (elsewhere === 0 || states.some((state) => state?.kind === "attached")) return;
    this.#log.error(
      { containers: elsewhere },
      "another dns11 serves the containers, so this one serves none: stop one of them",
    );
  }

  get #mode(): Status["mode"] {
    return this.#reloads.settings.isStrict ? "strict" : "default";
  }
}
