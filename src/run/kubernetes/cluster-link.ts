/**
 * ClusterLink: the names of a Kubernetes cluster in a run, from its first settings through all reloads.
 */
import type { ClusterReport } from "../../api/cluster.ts";
import type { ClusterPolicy } from "../../base/model/cluster-policy.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import { ClusterNames } from "../../container/names/kubernetes/cluster-names.ts";
import { ClusterConnection } from "./cluster-connection.ts";

/** Other settings that are not in force yet. */
export interface PreparedCluster {
  readonly names: ClusterNames | undefined;
  /** Puts these settings in force. */
  apply(): void;
  /** Ends what was prepared, because these settings will not be in force. */
  discard(): Promise<void>;
}

export class ClusterLink {
  readonly #onEvent: ReportEvent;
  readonly #onNames: () => void;
  #policy: ClusterPolicy;
  #names: ClusterNames | undefined;
  #connection: ClusterConnection | undefined;
  /** The connections before, while they end. */
  #ending: Promise<unknown> = Promise.resolve();

  /** `onNames`: called in the step in which names change. */
  constructor(policy: ClusterPolicy, onEvent: ReportEvent, onNames: () => void) {
    this.#policy = policy;
    this.#onEvent = onEvent;
    this.#onNames = onNames;
    this.#names = this.#namesFor(policy);
  }

  /** The names of the settings in force; undefined where no cluster is used. */
  get names(): ClusterNames | undefined {
    return this.#names;
  }

  /** null where no cluster is used. */
  get report(): ClusterReport | null {
    return this.#connection?.report ?? null;
  }

  start(): void {
    this.#connection = this.#open(this.#policy, this.#names);
  }

  /** Connects where a setting has changed, and waits for the names, but not for long. */
  async prepare(policy: ClusterPolicy): Promise<PreparedCluster> {
    if (JSON.stringify(policy) === JSON.stringify(this.#policy)) {
      return { names: this.#names, apply: () => undefined, discard: async () => await Promise.resolve() };
    }
    const names = this.#namesFor(policy);
    const connection = this.#open(policy, names);
    await connection?.settled();
    return {
      names,
      apply: () => {
        this.#ending = Promise.all([this.#ending, this.#connection?.close()]);
        [this.#policy, this.#names, this.#connection] = [policy, names, connection];
      },
      discard: async () => await connection?.close(),
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.#ending, this.#connection?.close()]);
    this.#connection = undefined;
  }

  #namesFor(policy: ClusterPolicy): ClusterNames | undefined {
    if (policy.api === undefined) return undefined;
    const names = new ClusterNames(policy);
    names.onChange = this.#onNames;
    return names;
  }

  #open(policy: ClusterPolicy, names: ClusterNames | undefined): ClusterConnection | undefined {
    const { api } = policy;
    if (api === undefined || names === undefined) return undefined;
    return new ClusterConnection({ policy: { ...policy, api }, names, onEvent: this.#onEvent });
  }
}
