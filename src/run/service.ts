/**
 * Service: a run from start to exit. Checks that may fail come first (platform, capabilities, kernel, engine, lock),
 * then the containers. Shutdown runs in reverse, and Docker's own resolver answers after each of its steps. Only here
 * do the query side and the container side meet.
 */
import type { ReloadReport, Status } from "../api/status.ts";
import { controlPath, instanceFolder } from "../api/state-paths.ts";
import type { RunSettings } from "../config/settings.ts";
import { Journal } from "../container/kind/journal.ts";
import { containerStatuses } from "../control/container-status.ts";
import { MetricsListener } from "../control/metrics-listener.ts";
import { monitoringRoutes } from "../control/monitoring-routes.ts";
import type { ControlPorts } from "../control/ports.ts";
import { QueryLog } from "../control/query-log.ts";
import { QueryReader } from "../control/query-reader.ts";
import { routesOf } from "../control/routes.ts";
import { ControlSocket } from "../control/socket.ts";
import type { Predecessor } from "../keeper/predecessor.ts";
import { threadCapabilities } from "../kernel/capabilities.ts";
import { descriptorsMax } from "../kernel/descriptors.ts";
import { reasonOf } from "../base/lib/fault.ts";
import { type Family, exposition } from "../metrics/exposition.ts";
import { familiesOf } from "../metrics/metrics.ts";
import { ContainerMetrics } from "../metrics/container-metrics.ts";
import type { Log } from "../base/log/log.ts";
import { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import type { ContainerSide, FindServeTarget, ServeTarget } from "./container-side.ts";
import { InternalErrors } from "./internal-errors.ts";
import { type Platform, preparePlatform } from "./platform.ts";
import { Handover } from "./handover.ts";
import { HangGuard } from "./hang-guard.ts";
import { trimMallocOnce } from "./heap.ts";
import { takeInstance } from "./instance.ts";
import { afterLameDuck } from "./lame-duck.ts";
import { Lifecycle } from "./lifecycle.ts";
import type { Quarantines } from "./quarantine/quarantines.ts";
import { ExclusiveResources } from "./exclusive-resources.ts";
import { type QuerySide, composeQuerySide } from "./query-side.ts";
import { Reloads } from "./reloads.ts";
import { startReplacement } from "./replacement.ts";
import { RunKeeper } from "./run-keeper.ts";
import { endPredecessor, takeOverFrom } from "./takeover.ts";
import { VERSION } from "./version.ts";

/** Both sides, and their counters. */
interface Serving {
  readonly querySide: QuerySide;
  readonly containerSide: ContainerSide;
  readonly safekeeping: RunKeeper;
  readonly counts: ContainerMetrics;
  readonly repeats: RateLimitedLog;
  readonly reader: QueryReader;
  readonly queryLog: QueryLog;
}

interface ComposeParts {
  readonly ground: Platform;
  /** State folder of the instance. */
  readonly folder: string;
  readonly quarantines: Quarantines;
  readonly safekeeping: RunKeeper;
  /** Nothing is attached before this resolves. */
  readonly begins: Promise<void>;
}

export class Service {
  readonly #log: Log;
  readonly #find: FindServeTarget;
  readonly #reloads: Reloads;
  readonly #life: Lifecycle;
  readonly #pages: MetricsListener;
  readonly #since = new Date();
  /** Set from the start of serving until everything is handed back. */
  #serving: Serving | undefined;

  /** `readSettings` reads the settings again. */
  constructor(settings: RunSettings, log: Log, readSettings: () => Promise<RunSettings>, find: FindServeTarget) {
    this.#log = log;
    this.#find = find;
    this.#life = new Lifecycle(process.env, log);
    this.#pages = new MetricsListener(this.#routesOfPages(), log);
    this.#reloads = new Reloads({
      settings,
      readSettings,
      log,
      apply: async (next, before) => await this.#goBy(next, before),
    });
  }

  /** Serves until `signal`, then hands everything back. Throws a Fault where it cannot start. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings } = this.#reloads;
    const ground = await preparePlatform(settings, this.#log);
    try {
      // With --replace, the process that serves now still has the listener.
      if (!settings.isReplacing) await this.#pages.listen(settings.metrics);
      this.#life.begin();
      const onWait = (what: string): void => this.#life.setWaitingFor(what);
      const premises = await this.#find({ settings, log: this.#log, signal, onWait });
      if (premises !== undefined) await this.#serve(premises, ground, signal);
    } finally {
      this.#life.end();
      this.#pages.close();
      ground.runner.close();
    }
  }

  /**
   * Applies the settings file as it is now. Where it is invalid, the previous settings stay, and a Fault says what is
   * wrong.
   */
  async reload(): Promise<ReloadReport> {
    this.#life.reloading();
    try {
      return await this.#reloads.reload();
    } finally {
      this.#life.reloaded();
    }
  }

  /** Starts the program that is on disk as a second process, which takes over. */
  replace(): void {
    startReplacement(this.#log);
  }

  async #serve(premises: ServeTarget, ground: Platform, signal: AbortSignal): Promise<void> {
    const { settings } = this.#reloads;
    const folder = instanceFolder(settings.stateDir, premises.instanceId);
    const quarantines = premises.openQuarantines(folder);
    const gone = new AbortController();
    const told = {
      onEvent: (about: object, text: string) => this.#log.warn(about, text),
      onHandoverRequested: () => handingOver.requested(),
      onHandoverCancelled: () => handingOver.cancelled(),
      onKeeperLost: () => handingOver.cancelled(),
      onHandoverCompleted: (successor: number) => handingOver.completed(successor),
    };
    const safekeeping = new RunKeeper(settings, ground.ruleBackend, folder, told);
    const begin = gate();
    const serving = this.#compose(premises, { ground, folder, quarantines, safekeeping, begins: begin.passed });
    const presence = this.#presenceOf(serving, { ground, quarantines }, premises);
    const handingOver = new Handover({
      log: this.#log,
      containerSide: serving.containerSide,
      presence,
      safekeeping,
      onGone: (successor) => {
        this.#life.handOverTo(successor);
        gone.abort();
      },
    });
    try {
      const predecessor = await this.#predecessor(safekeeping, folder);
      if (predecessor === undefined) {
        await presence.acquire();
        safekeeping.start();
        begin.open();
      }
      const stop = AbortSignal.any([this.#untilStopped(signal), gone.signal]);
      const parts = { log: this.#log, ground, presence, safekeeping, containerSide: serving.containerSide };
      const succession =
        predecessor && (async () => await takeOverFrom(predecessor, { ...parts, begin: begin.open }, stop));
      await this.#serveWith(serving, { folder, quarantines, handingOver }, stop, succession);
    } finally {
      presence.release();
      premises.close();
    }
  }

  /** The process to take over from, with --replace and where one serves. */
  async #predecessor(safekeeping: RunKeeper, folder: string): Promise<Predecessor | undefined> {
    if (!this.#reloads.settings.isReplacing) return undefined;
    const predecessor = await safekeeping.findPredecessor(folder);
    if (predecessor === undefined || predecessor.isSameVersion) return predecessor;
    await endPredecessor(predecessor, this.#log);
    return undefined;
  }

  #compose(premises: ServeTarget, parts: ComposeParts): Serving {
    const { ground, folder, quarantines, safekeeping, begins } = parts;
    const { settings } = this.#reloads;
    const log = this.#log;
    const repeats = new RateLimitedLog(log);
    const counts = new ContainerMetrics(settings.metrics.containers);
    const querySide = composeQuerySide(settings, log, repeats, (client, id) =>
      quarantines.recorder.setContainer(client, id),
    );
    const journal = new Journal(folder);
    const { hold: keep, inherited: heir } = safekeeping;
    const made = { settings, log, repeats, ground, querySide, counts, journal, quarantines, keep, heir, begins };
    const containerSide = premises.compose(made);
    const reader = new QueryReader(querySide.histories, (id) => containerSide.containers.facts.get(id)?.name);
    const queryLog = new QueryLog(reader, log);
    queryLog.setOn(settings.queries.isLogged);
    return { querySide, containerSide, safekeeping, counts, repeats, reader, queryLog };
  }

  #presenceOf(
    serving: Serving,
    { ground, quarantines }: Pick<ComposeParts, "ground" | "quarantines">,
    { instanceId }: ServeTarget,
  ): ExclusiveResources {
    const routes = { ...this.#routesOfPages(), ...routesOf(this.#portsOf(serving, ground)) };
    return new ExclusiveResources({
      takeInstance: () => takeInstance(this.#reloads.settings.stateDir, instanceId),
      openControl: async (path) => await ControlSocket.listen(path, routes),
      openPages: async () => await this.#pages.listen(this.#reloads.settings.metrics),
      closePages: () => this.#pages.close(),
      openBox: () => quarantines.begin(),
      closeBox: () => quarantines.close(),
    });
  }

  /** Serves until `stop`. `succession` runs before serving, while containers are already followed. */
  async #serveWith(
    serving: Serving,
    parts: { readonly folder: string; readonly quarantines: Quarantines; readonly handingOver: Handover },
    stop: AbortSignal,
    succession: (() => Promise<void>) | undefined,
  ): Promise<void> {
    const { folder, quarantines, handingOver } = parts;
    const { querySide, containerSide, safekeeping, repeats, queryLog } = serving;
    const guard = new HangGuard();
    const defects = new InternalErrors({
      log: this.#log,
      limitedLog: repeats,
      containerOf: (client) => quarantines.recorder.containerOf(client)?.slice(0, 12),
      onInternalError: () => void querySide.meter.counts.defects++,
    });
    const failed = new AbortController();
    try {
      if (succession === undefined) defects.begin(quarantines.recorder.currentClient);
      const following = containerSide.follow(AbortSignal.any([stop, failed.signal]));
      if (succession !== undefined) {
        await succession().catch(async (error: unknown) => {
          failed.abort();
          await following;
          throw error;
        });
        defects.begin(quarantines.recorder.currentClient);
      }
      quarantines.watch(() => containerSide.refresh());
      this.#life.setServing(() => ({
        isSynced: containerSide.isSynced,
        isSettled: containerSide.isSettled,
        containers: () => containerStatuses(containerSide.containers),
        lastActivityMs: () => containerSide.lastSignMs,
      }));
      this.#serving = serving;
      this.#tellServing(containerSide, controlPath(folder));
      trimMallocOnce(() => containerSide.isSynced && containerSide.isSettled);
      await following;
    } finally {
      if (handingOver.isServing) {
        this.#life.stopping();
        this.#log.info("handing back to Docker's resolver");
        await containerSide.stop();
        safekeeping.end();
      } else {
        await containerSide.abandon();
        safekeeping.detach();
      }
      queryLog.stop();
      guard.stop();
      defects.end();
      repeats.close();
      this.#log.info("stopped");
    }
  }

  #tellServing({ engine }: ContainerSide, control: string): void {
    const about = engine === null ? {} : { engine: engine.id, version: engine.version, address: engine.address };
    this.#log.info({ ...about, character: this.#character, control }, "serving");
  }

  /** After a stop signal: no longer ready, but serves on for the lame duck period. */
  #untilStopped(signal: AbortSignal): AbortSignal {
    return afterLameDuck(signal, () => {
      this.#life.stopping();
      const { lameDuckMs } = this.#reloads.settings;
      if (lameDuckMs > 0) this.#log.info({ ms: lameDuckMs }, "stopping, serving on for the lame duck period");
      return lameDuckMs;
    });
  }

  async #goBy(settings: RunSettings, before: RunSettings): Promise<void> {
    await this.#pages.listen(settings.metrics);
    try {
      if (this.#serving !== undefined) reconfigure(this.#serving, settings);
    } catch (error) {
      await this.#pages.listen(before.metrics).catch((fault: unknown) => {
        this.#log.warn({ reason: reasonOf(fault) }, "cannot restore the previous metrics listener");
      });
      throw error;
    }
  }

  #portsOf({ querySide, containerSide, safekeeping, reader }: Serving, ground: Platform): ControlPorts {
    const { containers, repairs, inside } = containerSide;
    return {
      containers,
      repairs,
      inside,
      resolver: querySide.asking,
      histories: querySide.histories,
      reader,
      status: () => this.#status(containerSide, safekeeping, ground),
      reload: async () => await this.reload(),
    };
  }

  #routesOfPages(): ReturnType<typeof monitoringRoutes> {
    return monitoringRoutes({
      metrics: async () => await exposition(this.#families()),
      life: () => this.#life.report(),
    });
  }

  #families(): Family[] {
    const { settings, done, failed } = this.#reloads;
    const base = {
      version: VERSION,
      settings: settings.origins,
      reloads: { done, failed },
      isReady: this.#life.report().ready,
      descriptorsMax: descriptorsMax(),
    };
    if (this.#serving === undefined) return familiesOf(base);
    const { querySide, containerSide, counts } = this.#serving;
    const containers = containerStatuses(containerSide.containers);
    const isConnected = containerSide.engine?.isConnected;
    const serving = { meter: querySide.meter, readings: querySide.readings(), counts, containers, isConnected };
    return familiesOf({ ...base, serving });
  }

  #status(containerSide: ContainerSide, safekeeping: RunKeeper, { ruleBackend: means }: Platform): Status {
    const { settings } = this.#reloads;
    return {
      version: VERSION,
      pid: process.pid,
      since: this.#since.toISOString(),
      mode: this.#character,
      ruleBackend: means.backend,
      engine: containerSide.engine,
      config: settings.config ?? null,
      settings: settings.origins,
      isReady: containerSide.isSynced && containerSide.isSettled,
      memoryBytes: process.memoryUsage.rss(),
      capabilities: threadCapabilities(),
      keeper: safekeeping.report,
      metrics: this.#pages.address ?? null,
      containers: containerStatuses(containerSide.containers),
    };
  }

  get #character(): Status["mode"] {
    return this.#reloads.settings.isStrict ? "strict" : "default";
  }
}

/** Opens once for all who wait. */
function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { passed, open };
}

/** Applies what a reload can change. */
function reconfigure({ querySide, containerSide, counts, queryLog }: Serving, settings: RunSettings): void {
  // First, because it may fail for want of memory: then nothing has changed.
  querySide.reconfigure(settings);
  counts.setContainersMax(settings.metrics.containers);
  queryLog.setOn(settings.queries.isLogged);
  containerSide.reconfigure(settings);
}
