import { backoffMs } from "../../base/lib/backoff.ts";
import { Fault } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { sleep } from "../../base/lib/sleep.ts";
import { inSlices } from "../../base/lib/slices.ts";
import { type ClusterApi, isExpired, isTooLarge, reportedFault, strangerFault } from "./api.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";

/** Where the objects go. They are as the API has sent them, and may be anything. */
export interface ObjectStore {
  /** There is no room for more. */
  readonly isFull: boolean;
  /** How many objects are left out for that, at least. */
  readonly refused: number;
  begin(): void;
  put(object: unknown): void;
  remove(object: unknown): void;
  /** What has been put since `begin` is all, but for so many that nobody has asked for because it is full. */
  commit(unlisted: number): void;
}

export interface ResourceMirrorParts {
  /** Opens the API anew: its credentials may have changed. Throws a Fault. */
  readonly open: () => Promise<ClusterApi>;
  /** The path of the resource in all namespaces. */
  readonly path: string;
  readonly store: ObjectStore;
  /** The objects are those of the API; or not any more, and why. */
  readonly onState: (fault: Fault | undefined) => void;
}

interface Message {
  readonly type?: unknown;
  readonly object?: unknown;
}

interface Page {
  readonly items?: unknown;
  readonly metadata?: {
    readonly continue?: unknown;
    readonly remainingItemCount?: unknown;
    readonly resourceVersion?: unknown;
  } | null;
}

/**
 * Keeps all objects of one resource in memory: a list, page by page, then the changes since. It starts again
 * where the API does not have these any more, and lasts until it is stopped, however long the API is away. When it is back
 * it may be that of another cluster at the same address, or have an older state, from a backup: then everything is listed again.
 */
export class ResourceMirror {
  readonly #parts: ResourceMirrorParts;
  readonly counts = { lists: 0, reconnects: 0 };
  #version: string | undefined;
  /** The cluster whose objects are known. */
  #cluster: string | undefined;
  #api: ClusterApi | undefined;
  #failures = 0;

  constructor(parts: ResourceMirrorParts) {
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#turn(signal);
      } catch (error) {
        if (signal.aborted) break;
        await this.#failed(error, signal);
      }
    }
    this.#api?.close();
  }

  async #failed(error: unknown, signal: AbortSignal): Promise<void> {
    if (isExpired(error)) {
      this.#version = undefined;
      // An API that has never what it has just listed must not be asked without a pause.
      if (this.#failures++ > 0) await this.#pause(signal);
      return;
    }
    if (!(error instanceof Fault)) guard.report(error, "elsewhere");
    this.#parts.onState(error instanceof Fault ? error : new Fault("INTERNAL", String(error)));
    this.#api?.close();
    this.#api = undefined;
    this.#failures++;
    await this.#pause(signal);
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { retryFirstMs: first, retryLastMs: last } = KUBERNETES_LIMITS;
    await sleep(backoffMs(this.#failures, first, last, Math.random()), signal);
  }

  /** One list, if one is needed, and one stream of changes. */
  async #turn(signal: AbortSignal): Promise<void> {
    const api = (this.#api ??= await this.#open(signal));
    this.#version ??= await this.#list(api, signal);
    const { path } = this.#parts;
    const since = encodeURIComponent(this.#version);
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${KUBERNETES_LIMITS.watchSeconds}&resourceVersion=${since}`;
    const reader = {
      // From here on what is known is current.
      onOpen: () => this.#parts.onState(undefined),
      onMessage: (message: object) => {
        this.#take(api, message);
        this.#failures = 0;
      },
    };
    await api.stream(`${path}?${query}`, reader, signal);
    this.#failures = 0;
    this.counts.reconnects++;
    const { isFull, refused } = this.#parts.store;
    if (refused > 0 && !isFull) this.#version = undefined;
    // A stream may end as soon as it is open.
    await sleep(KUBERNETES_LIMITS.retryFirstMs, signal);
  }

  async #open(signal: AbortSignal): Promise<ClusterApi> {
    const api = await this.#parts.open();
    try {
      if (!(await this.#goesOn(api, signal))) this.#version = undefined;
      this.#cluster = api.cluster;
      return api;
    } catch (error) {
      api.close();
      throw error;
    }
  }

  /** Whether changes since the known version are what has changed since. An API hands out larger and larger ones. */
  async #goesOn(api: ClusterApi, signal: AbortSignal): Promise<boolean> {
    if (this.#version === undefined || api.cluster !== this.#cluster) return false;
    const { metadata }: Page = await api.get(`${this.#parts.path}?limit=1`, signal);
    return Number(metadata?.resourceVersion) >= Number(this.#version);
  }

  async #list(api: ClusterApi, signal: AbortSignal): Promise<string> {
    const { path, store } = this.#parts;
    store.begin();
    let next = "";
    let version: string | undefined;
    let unlisted = 0;
    let objects: number = KUBERNETES_LIMITS.pageObjects;
    do {
      const query = `limit=${objects}${next === "" ? "" : `&continue=${encodeURIComponent(next)}`}`;
      let page: Page;
      try {
        page = await api.get(`${path}?${query}`, signal);
      } catch (error) {
        if (!isTooLarge(error) || objects === 1) throw error;
        objects = Math.ceil(objects / 2);
        continue;
      }
      const { items, metadata } = page;
      if (!Array.isArray(items) || typeof metadata?.resourceVersion !== "string") throw strangerFault(api.server, 200);
      await inSlices(putting(store, items));
      version = metadata.resourceVersion;
      next = typeof metadata.continue === "string" ? metadata.continue : "";
      // It would have no end.
      if (next !== "" && items.length === 0) throw strangerFault(api.server, 200);
      unlisted = next === "" ? 0 : countIn(metadata.remainingItemCount);
    } while (version === undefined || (next !== "" && !store.isFull));
    store.commit(unlisted);
    this.counts.lists++;
    return version;
  }

  #take(api: ClusterApi, { type, object }: Message): void {
    const { store } = this.#parts;
    if (type === "ERROR") {
      const { code, message } = (object ?? {}) as { readonly code?: unknown; readonly message?: unknown };
      throw reportedFault(api.server, Number(code), String(message));
    }
    const version = (object as { readonly metadata?: { readonly resourceVersion?: unknown } } | null)?.metadata
      ?.resourceVersion;
    if (type === "ADDED" || type === "MODIFIED") store.put(object);
    else if (type === "DELETED") store.remove(object);
    else if (type !== "BOOKMARK") throw strangerFault(api.server, 200);
    if (typeof version === "string") this.#version = version;
  }
}

/** How many objects a list has left; at least one, where the API does not say. */
function countIn(remaining: unknown): number {
  return Number.isSafeInteger(remaining) && (remaining as number) > 0 ? (remaining as number) : 1;
}

/** Puts one object after the other. */
function* putting(store: ObjectStore, objects: readonly unknown[]): Generator<void> {
  for (const object of objects) yield store.put(object);
}
