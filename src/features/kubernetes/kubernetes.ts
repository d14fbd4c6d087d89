import type { Status, ClusterReport } from "../../api/status.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import type { Settings } from "../../config/settings.ts";
import type { PlacedNames } from "../../container/names/name-sources.ts";
import { type Family, gauge, sample } from "../../metrics/exposition.ts";
import type { Prepared, RunCore, Running } from "../contract.ts";
import { type ClusterSettings, clusterOf, SERVICE_ACCOUNT } from "./feature.ts";
import { ClusterNames } from "./names.ts";
import { join } from "node:path";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { readBytes, textOf } from "../../config/file/files.ts";
import { ClusterApi, isExpired, isTooLarge, reportedFault, strangerFault } from "./api.ts";
import { type ClusterAccess, readKubeconfig } from "./kubeconfig.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";
import { backoffMs } from "../../base/lib/retry.ts";
import { guard } from "../../base/lib/guard.ts";
import { sleep } from "../../base/lib/async.ts";
import { inSlices } from "../../base/lib/slices.ts";

export function open(run: RunCore): Running {
  return new Cluster(run);
}

/** The names of a Kubernetes cluster in a run, from its first settings through all reloads. */
class Cluster implements Running {
  readonly #onEvent: ReportEvent;
  readonly #onNames: () => void;
  #settings: ClusterSettings;
  #names: ClusterNames | undefined;
  #connection: ClusterConnection | undefined;
  /** The connections before, while they end. */
  #ending: Promise<unknown> = Promise.resolve();

  constructor({ settings, onEvent, onNames }: RunCore) {
    this.#settings = clusterOf(settings);
    this.#onEvent = onEvent;
    this.#onNames = onNames;
    this.#names = this.#namesFor(this.#settings);
  }

  /** The names of the settings in force; undefined where no cluster is used. */
  get names(): PlacedNames | undefined {
    return placed(this.#names);
  }

  status(): Pick<Status, "cluster"> {
    return { cluster: this.#connection?.report ?? null };
  }

  metrics(): readonly Family[] {
    return this.#connection === undefined ? [] : clusterFamilies(this.#connection.report);
  }

  start(): void {
    this.#connection = this.#open(this.#settings, this.#names);
  }

  /** Connects where a setting has changed, and waits for the names, but not for long. */
  async prepare(all: Settings): Promise<Prepared> {
    const next = clusterOf(all);
    if (JSON.stringify(next) === JSON.stringify(this.#settings)) {
      return { names: this.names, commit: () => undefined, discard: async () => await Promise.resolve() };
    }
    const names = this.#namesFor(next);
    const connection = this.#open(next, names);
    await connection?.settled();
    return {
      names: placed(names),
      commit: () => {
        this.#ending = Promise.all([this.#ending, this.#connection?.close()]);
        [this.#settings, this.#names, this.#connection] = [next, names, connection];
      },
      discard: async () => await connection?.close(),
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.#ending, this.#connection?.close()]);
    this.#connection = undefined;
  }

  #namesFor(settings: ClusterSettings): ClusterNames | undefined {
    if (settings.api === undefined) return undefined;
    const names = new ClusterNames(settings);
    names.onChange = this.#onNames;
    return names;
  }

  #open(settings: ClusterSettings, names: ClusterNames | undefined): ClusterConnection | undefined {
    const { api } = settings;
    if (api === undefined || names === undefined) return undefined;
    return new ClusterConnection({ settings: { ...settings, api }, names, onEvent: this.#onEvent });
  }
}

function placed(source: ClusterNames | undefined): PlacedNames | undefined {
  return source && { place: "shared", source };
}

function clusterFamilies(report: ClusterReport): Family[] {
  const { state, staleSeconds, services, endpoints, refused, skipped } = report;
  return [
    gauge(
      "dns11_kubernetes_up",
      "1 while the names are those of the cluster, 0 while they are the last known or none.",
      [sample(state === "current" ? 1 : 0)],
    ),
    gauge("dns11_kubernetes_stale_seconds", "How long the API has not confirmed the names; 0 while it does.", [
      sample(staleSeconds ?? 0),
    ]),
    gauge("dns11_kubernetes_services", "Services of the cluster.", [sample(services)]),
    gauge("dns11_kubernetes_endpoints", "Endpoints of the cluster.", [sample(endpoints)]),
    gauge("dns11_kubernetes_skipped_objects", "Objects that are left out: invalid, or too many.", [
      sample(skipped + refused),
    ]),
  ];
}

interface ClusterConnectionParts {
  readonly settings: ClusterSettings & { readonly api: string };
  readonly names: ClusterNames;
  readonly onEvent: ReportEvent;
}

/** What is followed of a resource. */
interface Followed {
  readonly mirror: ResourceMirror;
  isCurrent: boolean;
  fault: Fault | undefined;
}

const SERVICES = "/api/v1/services";
const SLICES = "/apis/discovery.k8s.io/v1/endpointslices";
const SKIPPED_LOGGED = 3;

/**
 * One connection to the API of a cluster, from its settings to the names that it fills.
 */
class ClusterConnection {
  readonly #parts: ClusterConnectionParts;
  readonly #followed: readonly Followed[];
  readonly #stop = new AbortController();
  readonly #done: Promise<unknown>;
  #server: string | undefined;
  #isCurrent = false;
  /** The code of the last fault that was logged, until the API is back. */
  #loggedCode: string | undefined;
  #onState: () => void = () => {};

  constructor(parts: ClusterConnectionParts) {
    this.#parts = parts;
    const { services, slices } = parts.names;
    this.#followed = [this.#follow(SERVICES, services), this.#follow(SLICES, slices)];
    this.#done = Promise.all(this.#followed.map(async ({ mirror }) => await mirror.run(this.#stop.signal)));
  }

  get report(): ClusterReport {
    const { settings, names } = this.#parts;
    const { staleMs, isUsable, ...known } = names.report;
    const fault = this.#fault;
    const counts = this.#followed.map(({ mirror }) => mirror.counts);
    return {
      state: this.#isCurrent ? "current" : isUsable ? "last-known" : "unavailable",
      code: fault?.code ?? null,
      reason: fault?.message ?? null,
      remedy: fault?.remedy ?? null,
      staleSeconds: staleMs === undefined ? null : Math.round(staleMs / 1000),
      server: this.#server ?? null,
      zone: settings.zone,
      lists: counts.reduce((sum, { lists }) => sum + lists, 0),
      reconnects: counts.reduce((sum, { reconnects }) => sum + reconnects, 0),
      ...known,
    };
  }

  /** Resolves when the names are known, or it is known that they are not, or after a while. */
  async settled(): Promise<void> {
    if (this.#isCurrent || this.#fault !== undefined) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, KUBERNETES_LIMITS.settleMs);
      this.#onState = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  get #fault(): Fault | undefined {
    return this.#followed.find(({ fault }) => fault !== undefined)?.fault;
  }

  #follow(path: string, store: ObjectStore): Followed {
    const mirror = new ResourceMirror({
      open: async () => await this.#open(),
      path,
      store,
      onState: (fault) => {
        followed.isCurrent = fault === undefined;
        followed.fault = fault;
        this.#note();
      },
    });
    const followed: Followed = { mirror, isCurrent: false, fault: undefined };
    return followed;
  }

  async #open(): Promise<ClusterApi> {
    const access = await readClusterAccess(this.#parts.settings);
    this.#server = access.server;
    return new ClusterApi(access, readSmallFile);
  }

  #note(): void {
    const { names, onEvent } = this.#parts;
    const wasCurrent = this.#isCurrent;
    const fault = this.#fault;
    this.#isCurrent = this.#followed.every(({ isCurrent }) => isCurrent);
    if (this.#isCurrent !== wasCurrent || fault !== undefined) names.setCurrent(this.#isCurrent);
    if (this.#isCurrent || fault !== undefined) this.#onState();
    const { services, endpoints, skipped, problems } = names.report;
    if (this.#isCurrent && !wasCurrent) {
      this.#loggedCode = undefined;
      onEvent({ server: this.#server, services, endpoints }, "Kubernetes is connected");
      if (skipped > 0)
        onEvent({ skipped, first: problems.slice(0, SKIPPED_LOGGED) }, "skipped objects of Kubernetes", "warn");
    }
    if (fault !== undefined && this.#loggedCode !== fault.code) {
      this.#loggedCode = fault.code;
      const { message: reason, remedy } = fault;
      onEvent({ reason, remedy, services }, "Kubernetes is away, serving the last known names", "warn");
    }
  }
}

const FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Throws a Fault that says what is wrong. */
async function readClusterAccess({ api, context }: ClusterSettings & { readonly api: string }): Promise<ClusterAccess> {
  if (api === SERVICE_ACCOUNT) return await serviceAccount(process.env);
  try {
    return await readKubeconfig(api, context);
  } catch (error) {
    throw new Fault("CLUSTER_CONFIG", `cannot read the kubeconfig: ${reasonOf(error)}`, {
      remedy: "Check kubernetes.api and kubernetes.context: kubectl --kubeconfig FILE get services must work with it.",
    });
  }
}

/** Throws a Fault that says what is wrong. */
async function readSmallFile(path: string): Promise<string> {
  return textOf(await readBytes(path, KUBERNETES_LIMITS.fileBytes), path);
}

async function serviceAccount(environment: NodeJS.ProcessEnv): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "443" } = environment;
  try {
    if (host === "") throw new Error("KUBERNETES_SERVICE_HOST is not set");
    return {
      server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
      ca: await readSmallFile(join(FOLDER, "ca.crt")),
      serverName: undefined,
      certificate: undefined,
      key: undefined,
      token: undefined,
      tokenFile: join(FOLDER, "token"),
    };
  } catch (error) {
    throw new Fault("CLUSTER_CONFIG", `this is no pod with a service account: ${reasonOf(error)}`, {
      remedy: "Set kubernetes.api to a kubeconfig, or run dns11 in a pod whose service account token is mounted.",
    });
  }
}

/** Where the objects go. They are as the API has sent them, and may be anything. */
interface ObjectStore {
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

interface ResourceMirrorParts {
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
