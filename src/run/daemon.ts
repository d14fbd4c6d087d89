/**
 * Daemon: the life of `dns11 run`. What may refuse comes first (platform, capabilities, kernel, engine, lock), then the
 * containers; the way out runs backwards, and every step of it leaves Docker's own resolver answering.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../config/limits.ts";
import { type RunSettings, changedKeys } from "../config/settings.ts";
import { MORE_DESCRIPTORS } from "../container/attach/parts.ts";
import { Bracket, warmThreadPool } from "../container/namespace/bracket.ts";
import { type EngineHost, closeEngineHost, openEngineHost, processBehind } from "../container/namespace/engine-host.ts";
import { Engine, type EngineInfo } from "../container/watch/engine.ts";
import { type EngineAddress, engineAddress } from "../container/watch/engine-address.ts";
import { threadCapabilities } from "../kernel/capabilities.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { backoffMs } from "../lib/backoff.ts";
import { Fault, codeOf, reasonOf } from "../lib/fault.ts";
import type { RuleMeans } from "../model/rule-tier.ts";
import type { Log } from "../observe/log.ts";
import type { Family } from "../metrics/exposition.ts";
import { Journal } from "../container/kind/journal.ts";
import { type Composition, compose } from "./compose.ts";
import { Control, type Routes } from "../control/control.ts";
import { Defects } from "./defects.ts";
import { descriptorsMax, foreseeDescriptors, roomForContainers } from "../kernel/descriptors.ts";
import { HangGuard } from "./hang-guard.ts";
import { Quarantines } from "./quarantine/quarantines.ts";
import { keepHeapSmall } from "./heap.ts";
import { Life } from "./life.ts";
import { familiesOf } from "../metrics/metrics.ts";
import { ScrapeListener, pages } from "../control/scrape.ts";
import { type Instance, instanceFolder, takeInstance } from "../instance/instance.ts";
import { checkCapabilities, checkEngine } from "../container/preflight.ts";
import { routesOf } from "../control/routes.ts";
import { chooseMeans, warnOfMeans } from "../container/attach/rule-means.ts";
import { type ContainerStatus, type Status, containerStatus } from "../control/status.ts";
import type { ReloadReport } from "../api/told.ts";

export const VERSION = (
  JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as { readonly version: string }
).version;

export class Daemon {
  #settings: RunSettings;
  #reloading: Promise<unknown> = Promise.resolve();
  readonly #readSettings: () => Promise<RunSettings>;
  readonly #log: Log;
  readonly #address: EngineAddress;
  readonly #engine: Engine;
  readonly #since = new Date();
  /** Found out at the start of a run; a preview makes no rules. */
  #means: RuleMeans = { tier: "nft-owner", hasZones: true };
  #host: EngineHost | undefined;
  #info: EngineInfo | undefined;
  #composition: Composition | undefined;
  readonly #life: Life;
  readonly #pages: Routes;
  readonly #scrape: ScrapeListener;
  readonly #reloads = { done: 0, failed: 0 };

  /** `readSettings` reads them anew. */
  constructor(settings: RunSettings, log: Log, readSettings: () => Promise<RunSettings>) {
    this.#settings = settings;
    this.#readSettings = readSettings;
    this.#log = log;
    this.#address = engineAddress(settings.host, process.env);
    this.#engine = new Engine(this.#address.socketPath);
    this.#life = new Life(process.env, log);
    this.#pages = pages({ families: () => this.#families(), life: () => this.#life.report() });
    this.#scrape = new ScrapeListener(this.#pages, log);
  }

  /** Serves until `signal`, then hands everything back. Throws a Fault where it cannot begin. */
  async run(signal: AbortSignal): Promise<void> {
    checkCapabilities();
    keepHeapSmall();
    foreseeDescriptors();
    await warmThreadPool();
    const bracket = new Bracket();
    const memory = new NetlinkMemory();
    this.#means = chooseMeans(bracket, memory, this.#settings.rules);
    warnOfMeans(this.#means, this.#log);
    this.#checkRoom();
    await this.#scrape.listen(this.#settings.metrics);
    this.#life.begin();
    try {
      await this.#runWith(bracket, memory, signal);
    } finally {
      this.#life.end();
      this.#scrape.close();
      bracket.close();
    }
  }

  async #runWith(bracket: Bracket, memory: NetlinkMemory, signal: AbortSignal): Promise<void> {
    const info = await this.#waitForEngine(signal);
    if (info === undefined) return;
    const instance = takeInstance(this.#settings.stateDir, info.id);
    const quarantines = Quarantines.open(instance.folder, this.#log);
    try {
      this.#composition = this.#compose(bracket, memory, new Journal(instance.folder), quarantines);
      await this.#serve(instance, signal);
    } finally {
      quarantines.close();
      instance.release();
      if (this.#host !== undefined) closeEngineHost(this.#host);
    }
  }

  /**
   * Goes by what the settings file says now; where that is wrong, by what it said before, and throws a Fault that says what
   * is wrong. One after the other; the log tells it, too.
   */
  async reload(): Promise<ReloadReport> {
    const done = this.#reloading.then(async () => await this.#reload());
    this.#reloading = done.catch(() => undefined);
    return await done;
  }

  /** What a run would do with every container that runs now; touches none of them. */
  async preview(): Promise<readonly ContainerStatus[]> {
    checkCapabilities();
    const bracket = new Bracket();
    const info = await this.#engine.describe();
    this.#acceptEngine(info);
    const journal = new Journal(instanceFolder(this.#settings.stateDir, info.id));
    const composition = this.#compose(bracket, new NetlinkMemory(), journal, Quarantines.none());
    // Nothing that is wanted is done: the reconciler is stopped before it starts.
    await composition.reconciler.stop();
    composition.hostUpstreams.close();
    await composition.follower.once();
    const containers = this.#containers(composition);
    bracket.close();
    return containers;
  }

  async #reload(): Promise<ReloadReport> {
    const { config } = this.#settings;
    if (config === undefined) {
      this.#log.warn("there is no settings file to read again; name one with --config");
      throw new Fault("NO_SETTINGS_FILE", "There is no settings file to read again", {
        remedy: "Name one when dns11 is started: dns11 run --config FILE",
      });
    }
    this.#life.reloads();
    try {
      return await this.#reloadFrom(config);
    } finally {
      this.#life.reloaded();
    }
  }

  async #goBy(settings: RunSettings): Promise<void> {
    await this.#scrape.listen(settings.metrics);
    try {
      this.#composition?.reconfigure(settings);
    } catch (error) {
      await this.#scrape.listen(this.#settings.metrics).catch((fault: unknown) => {
        this.#log.warn({ reason: reasonOf(fault) }, "metrics cannot be served where they were");
      });
      throw error;
    }
  }

  async #reloadFrom(config: string): Promise<ReloadReport> {
    let settings;
    try {
      settings = await this.#readSettings();
      await this.#goBy(settings);
    } catch (error) {
      const reason = reasonOf(error).replaceAll("\n", "; ");
      this.#reloads.failed++;
      this.#log.error({ config, reason }, "settings not read again; the old ones stay");
      throw new Fault("NOT_RELOADED", `The settings were not read again, and the old ones stay:\n${reasonOf(error)}`);
    }
    if (settings.rules !== this.#settings.rules) {
      this.#log.warn({ rules: settings.rules }, "rules are held as they were until dns11 is started anew");
    }
    const changed = changedKeys(this.#settings.origins, settings.origins);
    this.#settings = settings;
    this.#reloads.done++;
    this.#log.info({ config, changed }, "settings read again");
    this.#log.level = settings.logLevel;
    return { config, changed };
  }

  async #serve(instance: Instance, signal: AbortSignal): Promise<void> {
    const composition = this.#composition as Composition;
    const status = (): Status => this.#status(composition);
    const routes = routesOf({ composition, status, reload: async () => await this.reload(), pages: this.#pages });
    const control = await Control.listen(instance.controlPath, routes);
    const guard = new HangGuard();
    const { queryWay, repeats, parts } = composition;
    const { box } = parts.quarantines;
    const defects = new Defects({
      log: this.#log,
      repeats,
      inWork: box.inWork,
      containerOf: (asker) => box.containerOf(asker)?.slice(0, 12),
      onDefect: () => void queryWay.meter.counts.defects++,
    });
    defects.begin();
    parts.quarantines.watch(() => composition.roster.refresh());
    this.#life.serves(() => ({
      isSynced: composition.follower.isSynced,
      isSettled: composition.reconciler.isSettled,
      containers: () => this.#containers(composition),
      lastSignMs: () => composition.follower.lastSignMs,
    }));
    const { id, version } = this.#info as EngineInfo;
    this.#log.info(
      {
        engine: id,
        version,
        address: this.#address.socketPath,
        character: this.#character(),
        control: instance.controlPath,
      },
      "serving",
    );
    try {
      await composition.follower.run(this.#afterLameDuck(signal));
    } finally {
      this.#life.stops();
      this.#log.info("handing back to Docker's resolver");
      await composition.reconciler.stop();
      composition.hostUpstreams.close();
      composition.queryLog.stop();
      guard.stop();
      defects.end();
      control.close();
      composition.repeats.close();
      this.#log.info("stopped");
    }
  }

  /** Told to stop: no longer ready, but everything goes on for as long as the settings say. */
  #afterLameDuck(signal: AbortSignal): AbortSignal {
    const over = new AbortController();
    const onStop = (): void => {
      this.#life.stops();
      const { lameDuckMs } = this.#settings;
      if (lameDuckMs === 0) return over.abort();
      this.#log.info({ ms: lameDuckMs }, "told to stop; answering on for a while");
      setTimeout(() => over.abort(), lameDuckMs);
    };
    if (signal.aborted) onStop();
    else signal.addEventListener("abort", onStop, { once: true });
    return over.signal;
  }

  #families(): Family[] {
    const composition = this.#composition;
    const base = {
      version: VERSION,
      settings: this.#settings.origins,
      reloads: this.#reloads,
      isReady: this.#life.report().ready,
    };
    if (composition === undefined) return familiesOf(base);
    const { queryWay, counts, follower } = composition;
    const containers = this.#containers(composition);
    const readings = queryWay.readings();
    const serving = { meter: queryWay.meter, readings, counts, containers, isConnected: follower.isConnected };
    return familiesOf({ ...base, serving });
  }

  /** Whoever has no room is not attached, and Docker's resolver answers there. */
  #checkRoom(): void {
    const descriptors = descriptorsMax();
    const room = roomForContainers(descriptors);
    if (room >= LIMITS.containersExpected) return;
    this.#log.warn(
      { descriptors, room, remedy: MORE_DESCRIPTORS },
      "there are descriptors for few containers; more are left to Docker's resolver",
    );
  }

  /** An engine that is not there yet is waited for; one that cannot be reached at all is a mistake of the command's. */
  async #waitForEngine(signal: AbortSignal): Promise<EngineInfo | undefined> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        const info = await this.#engine.describe(signal);
        this.#acceptEngine(info);
        return info;
      } catch (error) {
        if (signal.aborted) return undefined;
        if (codeOf(error) !== "ENGINE_AWAY") throw error;
        if (attempt === 0) {
          this.#log.warn({ reason: (error as Error).message }, "waiting for the engine");
        }
        this.#life.waitsFor(`the engine: ${(error as Error).message}`);
        const waitMs = backoffMs(attempt, LIMITS.engineRetryFirstMs, LIMITS.engineRetryLastMs, Math.random());
        await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  /** Called whenever the engine answers anew: it may be another process by then, and even another engine. */
  #acceptEngine(info: EngineInfo): void {
    checkEngine(info);
    if (this.#info !== undefined && this.#info.id !== info.id) {
      throw new Fault("ENGINE_OTHER", `Another engine (${info.id}) answers at "${this.#address.socketPath}" now`, {
        remedy: "Start dns11 again to serve that one.",
        isFinal: true,
      });
    }
    const pid = this.#settings.enginePid ?? processBehind(this.#address.socketPath);
    const host = openEngineHost(pid);
    if (this.#host !== undefined) closeEngineHost(this.#host);
    this.#host = host;
    this.#info = info;
  }

  #compose(bracket: Bracket, memory: NetlinkMemory, journal: Journal, quarantines: Quarantines): Composition {
    return compose({
      quarantines,
      settings: this.#settings,
      log: this.#log,
      engine: this.#engine,
      bracket,
      memory,
      means: this.#means,
      journal,
      host: () => this.#host as EngineHost,
      onEngine: (info) => this.#acceptEngine(info),
      engineVersion: () => this.#info?.majorVersion ?? 0,
    });
  }

  #status(composition: Composition): Status {
    const { follower, reconciler } = composition;
    const info = this.#info as EngineInfo;
    return {
      version: VERSION,
      pid: process.pid,
      since: this.#since.toISOString(),
      character: this.#character(),
      tier: this.#means.tier,
      engine: {
        id: info.id,
        version: info.version,
        address: this.#address.socketPath,
        isConnected: follower.isConnected,
      },
      config: this.#settings.config ?? null,
      settings: this.#settings.origins,
      isReady: follower.isSynced && reconciler.isSettled,
      memoryBytes: process.memoryUsage.rss(),
      capabilities: threadCapabilities(),
      metrics: this.#scrape.address ?? null,
      containers: this.#containers(composition),
    };
  }

  #containers({ roster, nodes, reconciler }: Composition): ContainerStatus[] {
    const attachments = new Map(reconciler.attachments());
    return [...roster.decisions()]
      .map(([fact, decision]) => {
        const node = nodes.isNode(fact) ? nodes.knownMode(fact.id)?.report() : undefined;
        return containerStatus(fact, decision, attachments.get(fact.id), roster.viewOf(fact), node);
      })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  #character(): Status["character"] {
    return this.#settings.isStrict ? "strict" : "better";
  }
}
