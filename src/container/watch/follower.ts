/**
 * Follower: keeps the facts up to date. Events mark containers to inspect, lists reveal what events missed, and only
 * inspects provide facts. So a lost event, a broken stream and a restarted engine are all repaired in the same way.
 * While the engine is away nothing is removed, and names still resolve.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import { backoffMs } from "../../base/lib/retry.ts";
import { Fault, isInternalError, reasonOf } from "../../base/lib/fault.ts";
import { type Latch, latch } from "../../base/lib/async.ts";
import { guard } from "../../base/lib/guard.ts";
import { inSlices } from "../../base/lib/slices.ts";
import type { ContainerFact, NetworkFact, StoppedFact } from "../facts/fact.ts";
import { type Ending, Endings } from "./endings.ts";
import type { Engine, EngineInfo } from "./engine.ts";
import type { ContainerJson, EngineEvent, ListedJson } from "./engine-json.ts";
import { ImageConfigs } from "./image-configs.ts";
import { LateContainers, type LateHooks } from "./late-containers.ts";
import { type ImageConfig, type SplitConfig, splitConfig } from "./split-config.ts";
import { StartingContainers, type StartingHooks } from "./starting-containers.ts";
import {
  type ContainerFiles,
  containerFact,
  isUp,
  knownFingerprint,
  listedFingerprint,
  networkFact,
  stoppedFact,
} from "./translate.ts";

export interface FollowerHooks {
  /** The engine answers, for the first time or again. Throws if this engine must not be followed. */
  readonly onConnected: (info: EngineInfo) => void;
  readonly onDisconnected: (reason: string) => void;
  /** Every running container has been inspected once. */
  readonly onSynced: () => void;
  readonly onNetwork: (fact: NetworkFact) => void;
  readonly onNetworkGone: (id: string) => void;
  readonly onContainer: (fact: ContainerFact) => void;
  readonly onContainerGone: (id: string, ending: Ending) => void;
  /** A network was created, or is gone. */
  readonly onNetworkEvent?: (name: string, isCreated: boolean) => void;
  readonly stopped?: StoppedHooks;
  readonly late?: LateHooks;
  readonly starting?: StartingHooks;
  /** A container could not be inspected; the follower will retry. */
  readonly onInspectFailed: (id: string, reason: string) => void;
  /** Why a container must not be inspected for now; undefined if it may be. */
  readonly barredBy?: (id: string) => string | undefined;
  /** An event has been applied, `lagMs` after it happened. */
  readonly onEventApplied?: (lagMs: number) => void;
  readonly filesOf: (json: ContainerJson) => ContainerFiles;
  /** The current facts by container. */
  readonly known: () => ReadonlyMap<string, ContainerFact>;
  readonly hasNetwork: (id: string) => boolean;
  /** The IDs of known networks. */
  readonly knownNetworks: () => Iterable<string>;
}

/** Containers that are not running, which are followed only where somebody is interested. */
interface StoppedHooks {
  /** The IDs of known containers; undefined if nobody is interested. */
  readonly known: () => Iterable<string> | undefined;
  /** It may have been running until now: `onContainerGone` follows then. */
  readonly put: (fact: StoppedFact) => void;
  readonly remove: (id: string) => void;
}

export type FollowedEngine = Pick<
  Engine,
  "describe" | "containers" | "stoppedContainers" | "container" | "network" | "networks" | "image" | "events" | "labels"
>;

const NANO_PER_MILLI = 1e6;
const STOPPED_STATES = new Set(["created", "exited", "dead"]);
const TIMED_OUT = Symbol("timed out");
const LABELS_POLL_MS = 5;
/** How often a container is inspected in vain before the others do without it. */
const INSPECTS_IN_VAIN = 3;

export class Follower {
  readonly #engine: FollowedEngine;
  readonly #hooks: FollowerHooks;
  readonly #images: ImageConfigs;
  readonly #marked = new Set<string>();
  readonly #inspecting = new Set<string>();
  /** The time of the first unapplied event, by container. */
  readonly #eventMs = new Map<string, number>();
  /** Of known containers. */
  readonly #endings = new Endings();
  /** Until all are known: how often each was inspected in vain. */
  readonly #inVain = new Map<string, number>();
  readonly #unknown = new Set<string>();
  /** Containers that must not be inspected for now. */
  readonly #barred = new Set<string>();
  readonly #late: LateContainers | undefined;
  readonly #starting: StartingContainers | undefined;
  /** Which keys of labels were read when a container was inspected last. */
  readonly #labelsRead = new Map<string, number>();
  #lastActivityMs = performance.now();
  #isConnected = false;
  #hasListed = false;
  readonly #synced = latch();

  constructor(engine: FollowedEngine, hooks: FollowerHooks) {
    this.#engine = engine;
    this.#hooks = hooks;
    this.#images = new ImageConfigs(engine);
    this.#late = hooks.late && new LateContainers(engine, hooks.late);
    this.#starting =
      hooks.starting &&
      new StartingContainers({
        ...{ engine, images: this.#images, hooks: hooks.starting },
        barredBy: (id) => hooks.barredBy?.(id),
        ...{ hasNetwork: hooks.hasNetwork, onNetwork: hooks.onNetwork },
      });
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** The time of the last event or response, on the clock of `performance.now`. */
  get lastActivityMs(): number {
    return this.#lastActivityMs;
  }

  /** Open once every running container has been inspected; one that cannot be, several times in vain. */
  get synced(): Latch {
    return this.#synced;
  }

  /** Running containers that could not be inspected so far, once the others have been: nothing may be concluded about them. */
  get unknown(): ReadonlySet<string> {
    return this.#unknown;
  }

  /** Inspects every running container once, without following. */
  async once(): Promise<void> {
    const listed = await this.#engine.containers();
    for (const { Id: id } of listed) await this.#inspect(id);
  }

  /**
   * Inspects containers again, because settings changed what follows from their facts; later, if the engine is away.
   */
  reinspect(ids: Iterable<string> = this.#hooks.known().keys()): void {
    for (const id of ids) this.#marked.add(id);
    if (this.#isConnected) this.#pump();
  }

  /** Somebody wants to know further labels: resolves when those of all known containers are, or when the engine takes too long. */
  async learnLabels(keys: Iterable<string>): Promise<void> {
    const { labels } = this.#engine;
    if (!labels.add(keys)) return;
    this.reinspect();
    const deadlineMs = performance.now() + LIMITS.inspectMs;
    const isRead = (id: string): boolean => this.#labelsRead.get(id) === labels.generation;
    const hasAll = (): boolean => [...this.#hooks.known().keys()].every(isRead);
    while (this.#isConnected && !hasAll() && performance.now() < deadlineMs) await sleep(LABELS_POLL_MS);
  }

  /** Follows the engine until `signal`. */
  async run(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      this.#lastActivityMs = performance.now();
      const connection = new AbortController();
      const both = AbortSignal.any([signal, connection.signal]);
      try {
        await this.#follow(both, connection, () => (attempt = 0));
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Fault && error.isFinal) throw error;
        this.#hooks.onDisconnected(reasonOf(error));
      } finally {
        this.#isConnected = false;
        connection.abort();
      }
      const waitMs = backoffMs(attempt, LIMITS.engineRetryFirstMs, LIMITS.engineRetryLastMs, Math.random());
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** One connection: opens the stream before listing, so that nothing is missed in between. */
  async #follow(signal: AbortSignal, connection: AbortController, onConnected: () => void): Promise<void> {
    const info = await this.#engine.describe(signal);
    this.#hooks.onConnected(info);
    const events = await this.#engine.events(signal);
    this.#isConnected = true;
    onConnected();
    let failure: unknown = new Error("the engine closed the event stream");
    const resync = (): void => {
      this.#resync().catch((error: unknown) => {
        failure = error;
        connection.abort();
      });
    };
    resync();
    const timer = setInterval(resync, LIMITS.resyncEveryMs);
    try {
      for await (const event of events) guard.run("engine", 0, () => this.#onEvent(event));
    } catch (error) {
      if (!connection.signal.aborted) failure = error;
    } finally {
      clearInterval(timer);
    }
    throw failure;
  }

  #onEvent(event: EngineEvent): void {
    const { Type: type, Action: action, Actor: actor, timeNano } = event;
    this.#lastActivityMs = performance.now();
    const id = actor?.ID;
    if (id === undefined) return;
    const atMs = (timeNano ?? 0) / NANO_PER_MILLI;
    if (type === "container") {
      if (this.#hooks.known().has(id)) this.#endings.note(event);
      // A container is usually started at once. An inspect of these now would only delay the one after its start.
      if (action === "create") setTimeout(() => this.#markStopped(id), LIMITS.startAfterCreateMs).unref();
      // A signal alone changes no facts.
      else if (action !== "kill") this.#markAt(id, atMs);
      if (action === "create") void this.#starting?.created(id);
    }
    if (type !== "network") return;
    const isGone = action === "destroy" || action === "remove";
    const name = actor?.Attributes?.["name"];
    if (name !== undefined && (isGone || action === "create")) this.#hooks.onNetworkEvent?.(name, !isGone);
    if (isGone) {
      this.#hooks.onNetworkGone(id);
      return;
    }
    const container = actor?.Attributes?.["container"];
    if (container === undefined) return;
    if (action === "connect") this.#late?.connected(container, id);
    this.#markAt(container, atMs);
  }

  #markAt(id: string, atMs: number): void {
    if (atMs > 0 && !this.#eventMs.has(id)) this.#eventMs.set(id, atMs);
    this.#mark(id);
  }

  #markStopped(id: string): void {
    if (this.#isConnected && !this.#hooks.known().has(id) && this.#hooks.stopped?.known() !== undefined) this.#mark(id);
  }

  /** Marks containers that have stopped or been removed without an event. */
  async #resyncStopped(): Promise<void> {
    const known = this.#hooks.stopped?.known();
    if (known === undefined) return;
    const before = new Set(known);
    const listed = await this.#engine.stoppedContainers();
    const ids = new Set(listed.filter(({ State: state }) => STOPPED_STATES.has(state ?? "")).map(({ Id: id }) => id));
    for (const id of new Set([...before, ...ids])) if (!before.has(id) || !ids.has(id)) this.#markStopped(id);
  }

  /** Containers of which something is known, or to be known. */
  #followed(): Set<string> {
    return new Set([...this.#hooks.known().keys(), ...this.#inVain.keys(), ...this.#unknown, ...this.#barred]);
  }

  /** Marks containers whose summary differs from the facts, and those that are no longer listed. */
  async #resync(): Promise<void> {
    // Nothing but a list says that these have ended.
    const barred = new Map([...this.#barred].map((id) => [id, this.#late?.began(id) ?? 0]));
    const listed = await this.#engine.containers();
    this.#lastActivityMs = performance.now();
    const known = this.#hooks.known();
    const ids = new Set(listed.map(({ Id: id }) => id));
    for (const id of this.#followed()) {
      if (ids.has(id)) continue;
      const connections = barred.get(id);
      if (connections === undefined) this.#mark(id);
      else this.#ended(id, connections, undefined);
    }
    await inSlices(this.#comparing(listed, known));
    this.#hasListed = true;
    this.#pump();
    this.#checkSynced();
    await this.#resyncNetworks(listed);
    if (this.#synced.isOpen) await this.#resyncStopped();
  }

  /** Forgets networks that were removed without an event. One that a container is on is there. */
  async #resyncNetworks(listed: readonly ListedJson[]): Promise<void> {
    const used = new Set(listed.flatMap(networkIdsIn));
    const unused = [...this.#hooks.knownNetworks()].filter((id) => !used.has(id));
    if (unused.length === 0) return;
    const present = new Set((await this.#engine.networks()).map(({ Id: id }) => id));
    for (const id of unused) if (!present.has(id)) this.#hooks.onNetworkGone(id);
  }

  *#comparing(listed: readonly ListedJson[], known: ReadonlyMap<string, ContainerFact>): Generator<void> {
    for (const json of listed) {
      const fact = known.get(json.Id);
      if (fact === undefined) this.#late?.listed(json);
      if (fact === undefined || knownFingerprint(fact) !== listedFingerprint(json)) this.#mark(json.Id);
      yield;
    }
  }

  #mark(id: string): void {
    this.#marked.add(id);
    this.#pump();
  }

  /** Inspects marked containers, several in parallel but each container only once at a time. */
  #pump(): void {
    for (const id of this.#marked) {
      if (this.#inspecting.size >= LIMITS.inspectsAtOnce) return;
      if (this.#inspecting.has(id)) continue;
      this.#marked.delete(id);
      this.#inspecting.add(id);
      const atMs = this.#eventMs.get(id);
      this.#eventMs.delete(id);
      void this.#inspect(id).finally(() => {
        this.#inspecting.delete(id);
        if (atMs !== undefined) this.#hooks.onEventApplied?.(Math.max(0, Date.now() - atMs));
        if (this.#isConnected) this.#pump();
        this.#checkSynced();
      });
    }
  }

  async #inspect(id: string): Promise<void> {
    const { generation } = this.#engine.labels;
    const connections = this.#late?.began(id) ?? 0;
    const bar = this.#hooks.barredBy?.(id);
    if (bar === undefined) this.#barred.delete(id);
    else this.#barred.add(id);
    try {
      if (bar !== undefined) throw new Error(bar);
      const json = await this.#engine.container(id);
      if (json === undefined || !isUp(json)) {
        if (json === undefined) this.#starting?.forget(id);
        else this.#starting?.stopped(json);
        // While what was known of it still is: its names never go upstream.
        if (json === undefined) this.#hooks.stopped?.remove(id);
        else this.#putStopped(json);
        this.#ended(id, connections, json?.State?.ExitCode);
        return;
      }
      this.#endings.forgetExit(id);
      const image = this.#splitOf(json);
      const isPending = image instanceof Promise;
      const split = isPending ? splitConfig(json, "awaited") : image;
      const fact = containerFact(json, this.#hooks.filesOf(json), split);
      await Promise.all(fact.endpoints.map(({ networkId }) => this.#learnNetwork(networkId)));
      this.#inVain.delete(id);
      this.#unknown.delete(id);
      this.#starting?.forget(id);
      this.#labelsRead.set(id, generation);
      this.#hooks.onContainer(fact);
      this.#late?.known(id, connections);
      if (isPending) await this.#splitLater(fact, json, image);
    } catch (error) {
      if (isInternalError(error)) guard.report(error, "engine");
      this.#hooks.onInspectFailed(id, reasonOf(error));
      this.#late?.failed(id);
      const times = (this.#inVain.get(id) ?? 0) + 1;
      if (!this.#synced.isOpen) this.#inVain.set(id, times);
      // The next list reveals new containers; a known container that changed must be marked here.
      const waitMs = this.#synced.isOpen ? LIMITS.engineRetryLastMs : LIMITS.engineRetryFirstMs * 5 ** times;
      const retry = (): void => {
        if (bar === undefined || this.#barred.has(id)) this.reinspect([id]);
      };
      setTimeout(retry, waitMs).unref();
    }
  }

  /** `connections` is what `began` said before the engine was asked. */
  #ended(id: string, connections: number, exitCode: number | undefined): void {
    this.#inVain.delete(id);
    this.#unknown.delete(id);
    this.#barred.delete(id);
    this.#labelsRead.delete(id);
    this.#late?.known(id, connections);
    if (this.#hooks.known().has(id)) this.#hooks.onContainerGone(id, this.#endings.take(id, exitCode));
  }

  /** Nothing waits for its image: the inspect after its start must not. */
  #putStopped(json: ContainerJson): void {
    const { stopped } = this.#hooks;
    if (stopped?.known() === undefined) return;
    const split = this.#splitOf(json);
    if (!(split instanceof Promise)) return stopped.put(stoppedFact(json, split));
    stopped.put(stoppedFact(json, splitConfig(json, "awaited")));
    const putAgain = (image: ImageConfig | undefined): void => {
      const isStillStopped = new Set(stopped.known()).has(json.Id);
      if (isStillStopped) stopped.put(stoppedFact(json, splitConfig(json, image)));
    };
    // Without its image's labels, all of them count as the image's.
    void split.then(putAgain).catch(() => undefined);
  }

  /** The split configuration: it never changes, so it is determined once, and again when further labels are read. */
  #splitOf(json: ContainerJson): SplitConfig | Promise<ImageConfig | undefined> {
    const known = this.#hooks.known().get(json.Id);
    const isCurrent = this.#labelsRead.get(json.Id) === this.#engine.labels.generation;
    if (isCurrent && known?.imageLabels.source === "known")
      return { labels: known.labels, imageLabels: known.imageLabels, ports: known.ports };
    const image = this.#images.of(json);
    return image instanceof Promise ? image : splitConfig(json, image);
  }

  /** Reports a container again once its image has been inspected or the wait timed out. */
  async #splitLater(
    fact: ContainerFact,
    json: ContainerJson,
    pending: Promise<ImageConfig | undefined>,
  ): Promise<void> {
    const timeout = sleep(LIMITS.imageWaitMs, TIMED_OUT, { ref: false });
    const image = await Promise.race([pending, timeout]).catch((error: unknown) => new Error(reasonOf(error)));
    const isKnown = image !== TIMED_OUT && !(image instanceof Error);
    this.#hooks.onContainer({ ...fact, ...splitConfig(json, isKnown ? image : undefined) });
    if (image === TIMED_OUT) void pending.catch(() => undefined).then(() => this.#mark(fact.id));
    if (image instanceof Error) throw image;
  }

  /** Inspects a network once: until its removal a network never changes. */
  async #learnNetwork(id: string): Promise<void> {
    if (this.#hooks.hasNetwork(id)) return;
    const json = await this.#engine.network(id);
    if (json !== undefined) this.#hooks.onNetwork(networkFact(json));
  }

  #checkSynced(): void {
    if (this.#synced.isOpen || !this.#hasListed || this.#marked.size > 0 || this.#inspecting.size > 0) return;
    if ([...this.#inVain.values()].some((times) => times < INSPECTS_IN_VAIN)) return;
    for (const id of this.#inVain.keys()) this.#unknown.add(id);
    this.#inVain.clear();
    this.#synced.open();
    this.#hooks.onSynced();
    // The next list repeats it.
    void this.#resyncStopped().catch(() => undefined);
  }
}

function networkIdsIn({ NetworkSettings: settings }: ListedJson): string[] {
  return Object.values(settings?.Networks ?? {}).flatMap(({ NetworkID: id }) => id ?? []);
}
