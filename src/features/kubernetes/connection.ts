import { join } from "node:path";

import type { ClusterReport } from "../../api/cluster.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import { readBytes, textOf } from "../../config/file/files.ts";
import { ClusterApi } from "./api.ts";
import { type ClusterSettings, SERVICE_ACCOUNT } from "./feature.ts";
import { type ClusterAccess, readKubeconfig } from "./kubeconfig.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";
import type { ClusterNames } from "./names.ts";
import { type ObjectStore, ResourceMirror } from "./resource-mirror.ts";

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
