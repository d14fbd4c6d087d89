/**
 * ClusterConnection: one connection to the API of a cluster, from its settings to the names that it fills.
 */
import type { ClusterReport } from "../../api/cluster.ts";
import type { Fault } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import type { ClusterPolicy } from "../../base/model/cluster-policy.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import type { ClusterNames } from "../../container/names/kubernetes/cluster-names.ts";
import { ClusterApi } from "../../kubernetes/cluster-api.ts";
import { type ObjectStore, ResourceMirror } from "../../kubernetes/resource-mirror.ts";
import { readClusterAccess, readSmallFile } from "./cluster-access.ts";

interface ClusterConnectionParts {
  readonly policy: ClusterPolicy & { readonly api: string };
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

export class ClusterConnection {
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
    const { policy, names } = this.#parts;
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
      zone: policy.zone,
      lists: counts.reduce((sum, { lists }) => sum + lists, 0),
      reconnects: counts.reduce((sum, { reconnects }) => sum + reconnects, 0),
      ...known,
    };
  }

  /** Resolves when the names are known, or it is known that they are not, or after a while. */
  async settled(): Promise<void> {
    if (this.#isCurrent || this.#fault !== undefined) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LIMITS.clusterSettleMs);
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
    const access = await readClusterAccess(this.#parts.policy);
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
