/**
 * Follower: keeps the facts true. Events mark what to look at, lists tell what was missed, inspects give the facts: so a
 * lost event, a lost stream and a restarted engine all heal by the same way. While the engine is away nothing is
 * forgotten, and names go on answering.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import { backoffMs } from "../../base/lib/backoff.ts";
import { Fault, isInternalError, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { ContainerFact, NameserversFact, NetworkFact } from "../registry/fact.ts";
import { type Labels, type SplitLabels, splitLabels } from "../registry/labels.ts";
import type { Engine, EngineEvent, EngineInfo } from "./engine.ts";
import type { ContainerJson } from "./engine-json.ts";
import { ImageLabels } from "./image-labels.ts";
import { containerFact, isUp, knownFingerprint, listedFingerprint, mergedLabels, networkFact } from "./translate.ts";

/** Who wants to know. */
export interface FollowerHooks {
  /** The engine answers, for the first time or again; throws where it must not be followed. */
  readonly onConnected: (info: EngineInfo) => void;
  readonly onDisconnected: (reason: string) => void;
  /** Every running container has been looked at once. */
  readonly onSynced: () => void;
  readonly onNetwork: (fact: NetworkFact) => void;
  readonly onNetworkGone: (id: string) => void;
  readonly onContainer: (fact: ContainerFact) => void;
  readonly onContainerGone: (id: string) => void;
  /** A container could not be looked at; it will be again. */
  readonly onInspectFailed: (id: string, reason: string) => void;
  /** What an event said has been taken in, so many milliseconds after it. */
  readonly onEventApplied?: (lagMs: number) => void;
  readonly nameserversOf: (json: ContainerJson) => NameserversFact;
  /** What is known now. */
  readonly known: () => ReadonlyMap<string, ContainerFact>;
  readonly hasNetwork: (id: string) => boolean;
}

/** What is asked of an engine. */
export type FollowedEngine = Pick<Engine, "describe" | "containers" | "container" | "network" | "image" | "events">;

const NANO_PER_MILLI = 1e6;
const TIMED_OUT = Symbol("late");

export class Follower {
  readonly #engine: FollowedEngine;
  readonly #hooks: FollowerHooks;
  readonly #images: ImageLabels;
  readonly #marked = new Set<string>();
  readonly #inspecting = new Set<string>();
  /** Of what events have marked: when the first of them happened. */
  readonly #eventMs = new Map<string, number>();
  #lastSignMs = performance.now();
  #isConnected = false;
  #hasListed = false;
  #isSynced = false;

  constructor(engine: FollowedEngine, hooks: FollowerHooks) {
    this.#engine = engine;
    this.#hooks = hooks;
    this.#images = new ImageLabels(engine);
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** When anything here was last heard of, on the clock of `performance.now`. */
  get lastActivityMs(): number {
    return this.#lastSignMs;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Looks at every running container once, without following. */
  async once(): Promise<void> {
    const listed = await this.#engine.containers();
    for (const { Id: id } of listed) await this.#inspect(id);
  }

  /** Looks at containers anew, because what is read of them means something else now; later, if the engine is away. */
  reinspect(ids: Iterable<string> = this.#hooks.known().keys()): void {
    for (const id of ids) this.#marked.add(id);
    if (this.#isConnected) this.#pump();
  }

  /** Follows until `signal`. */
  async run(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      this.#lastSignMs = performance.now();
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

  /** One connection: stream first, list second, so that nothing falls between them. */
  async #follow(signal: AbortSignal, connection: AbortController, onConnected: () => void): Promise<void> {
    const info = await this.#engine.describe(signal);
    this.#hooks.onConnected(info);
    const events = await this.#engine.events(signal);
    this.#isConnected = true;
    onConnected();
    let failure: unknown = new Error("the engine ended the stream of events");
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

  #onEvent({ Type: type, Action: action, Actor: actor, timeNano }: EngineEvent): void {
    this.#lastSignMs = performance.now();
    const id = actor?.ID;
    if (id === undefined) return;
    const atMs = (timeNano ?? 0) / NANO_PER_MILLI;
    if (type === "container") this.#markAt(id, atMs);
    if (type !== "network") return;
    if (action === "destroy" || action === "remove") {
      this.#hooks.onNetworkGone(id);
      return;
    }
    const container = actor?.Attributes?.["container"];
    if (container !== undefined) this.#markAt(container, atMs);
  }

  #markAt(id: string, atMs: number): void {
    if (atMs > 0 && !this.#eventMs.has(id)) this.#eventMs.set(id, atMs);
    this.#mark(id);
  }

  /** Marks every container whose listing differs from what is known, and those that are not listed any more. */
  async #resync(): Promise<void> {
    const listed = await this.#engine.containers();
    this.#lastSignMs = performance.now();
    const known = this.#hooks.known();
    const ids = new Set(listed.map(({ Id: id }) => id));
    for (const id of known.keys()) if (!ids.has(id)) this.#mark(id);
    for (const json of listed) {
      const fact = known.get(json.Id);
      if (fact === undefined || knownFingerprint(fact) !== listedFingerprint(json)) this.#mark(json.Id);
    }
    this.#hasListed = true;
    this.#pump();
    this.#noteSynced();
  }

  #mark(id: string): void {
    this.#marked.add(id);
    this.#pump();
  }

  /** Inspects what is marked, several at a time and each container once at a time. */
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
        this.#noteSynced();
      });
    }
  }

  async #inspect(id: string): Promise<void> {
    try {
      const json = await this.#engine.container(id);
      if (json === undefined || !isUp(json)) {
        if (this.#hooks.known().has(id)) this.#hooks.onContainerGone(id);
        return;
      }
      const image = this.#labelsOf(json);
      const isAsked = image instanceof Promise;
      const labels = isAsked ? splitLabels(mergedLabels(json), "awaited") : image;
      const fact = containerFact(json, this.#hooks.nameserversOf(json), labels);
      await Promise.all(fact.endpoints.map(({ networkId }) => this.#learnNetwork(networkId)));
      this.#hooks.onContainer(fact);
      if (isAsked) await this.#splitLabels(fact, image);
    } catch (error) {
      if (isInternalError(error)) guard.report(error, "engine");
      this.#hooks.onInspectFailed(id, reasonOf(error));
      // The next comparison of lists finds what this one missed; a container that changed in place is marked here.
      setTimeout(() => this.#mark(id), LIMITS.engineRetryLastMs).unref();
    }
  }

  /** Whose labels they are, asked for once in a container's life: they never change. */
  #labelsOf(json: ContainerJson): SplitLabels | Promise<Labels | undefined> {
    const known = this.#hooks.known().get(json.Id);
    if (known?.imageLabels.source === "known") return { labels: known.labels, imageLabels: known.imageLabels };
    const image = this.#images.of(json);
    return image instanceof Promise ? image : splitLabels(mergedLabels(json), image);
  }

  /** Tells a container anew when its image has answered, or after a while without: its names were told before. */
  async #splitLabels(fact: ContainerFact, asked: Promise<Labels | undefined>): Promise<void> {
    const late = sleep(LIMITS.imageWaitMs, TIMED_OUT, { ref: false });
    const image = await Promise.race([asked, late]).catch((error: unknown) => new Error(reasonOf(error)));
    const isTold = image !== TIMED_OUT && !(image instanceof Error);
    this.#hooks.onContainer({ ...fact, ...splitLabels(fact.imageLabels.labels, isTold ? image : undefined) });
    if (image === TIMED_OUT) void asked.catch(() => undefined).then(() => this.#mark(fact.id));
    if (image instanceof Error) throw image;
  }

  /** A network never changes but for its end, so one look is enough. */
  async #learnNetwork(id: string): Promise<void> {
    if (this.#hooks.hasNetwork(id)) return;
    const json = await this.#engine.network(id);
    if (json !== undefined) this.#hooks.onNetwork(networkFact(json));
  }

  #noteSynced(): void {
    if (this.#isSynced || !this.#hasListed || this.#marked.size > 0 || this.#inspecting.size > 0) return;
    this.#isSynced = true;
    this.#hooks.onSynced();
  }
}
