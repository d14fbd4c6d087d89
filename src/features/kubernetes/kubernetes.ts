import type { ClusterReport } from "../../api/cluster.ts";
import type { Status } from "../../api/status.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import type { Settings } from "../../config/settings.ts";
import type { Family } from "../../metrics/exposition.ts";
import { gauge, sample } from "../../metrics/family.ts";
import type { Prepared, RunCore, Running } from "../contract.ts";
import { ClusterConnection } from "./connection.ts";
import { type ClusterSettings, clusterOf } from "./feature.ts";
import { ClusterNames } from "./names.ts";

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
  get names(): ClusterNames | undefined {
    return this.#names;
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
      return { names: this.#names, commit: () => undefined, discard: async () => await Promise.resolve() };
    }
    const names = this.#namesFor(next);
    const connection = this.#open(next, names);
    await connection?.settled();
    return {
      names,
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
