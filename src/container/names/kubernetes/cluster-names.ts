/**
 * ClusterNames: the names of a Kubernetes cluster in memory, as a source of names for its domain. It holds every name below
 * it: what does not exist is denied here. While the API is away, what is known is answered for a limited time; without
 * anything known, or after it, queries fail, because to deny a name would be a guess.
 */
import { LIMITS } from "../../../base/limits.ts";
import type { ClusterPolicy } from "../../../base/model/cluster-policy.ts";
import type { VisibleNames } from "../../../base/model/visible-names.ts";
import type { ContainerFact } from "../../facts/fact.ts";
import { DnsZone } from "../source/dns-zone.ts";
import { Freshness } from "../source/freshness.ts";
import type { KeyProblem } from "../source/key-problems.ts";
import type { NameSource, NodeContext } from "../source/name-source.ts";
import { ClusterLookup } from "./cluster-lookup.ts";
import { type ClusterService, type ClusterSlice, readService, readSlice } from "./cluster-objects.ts";
import { ClusterResource } from "./cluster-resource.ts";
import { ServiceTable } from "./service-table.ts";
import { SliceTable } from "./slice-table.ts";
import { VisibleCluster } from "./visible-cluster.ts";

/** What is known, and how well. */
export interface ClusterNamesReport {
  readonly services: number;
  readonly endpoints: number;
  /** Objects that are left out because there are too many. */
  readonly refused: number;
  readonly skipped: number;
  /** The first of those that are not valid. */
  readonly problems: readonly KeyProblem[];
  readonly staleMs: number | undefined;
  /** Queries are answered. */
  readonly isUsable: boolean;
}

export class ClusterNames implements NameSource {
  readonly #zone: DnsZone;
  readonly #freshness: Freshness;
  readonly services: ClusterResource<ClusterService, ServiceTable>;
  readonly slices: ClusterResource<ClusterSlice, SliceTable>;
  /** Called in the step in which answers change. */
  onChange: () => void = () => undefined;

  constructor(policy: ClusterPolicy, now?: () => number) {
    this.#zone = new DnsZone(policy.zone);
    this.#freshness = new Freshness(policy.staleSecondsMax, now);
    const onObjects = (): void => this.#noteObjects();
    this.services = new ClusterResource(
      {
        kind: "Service",
        newTable: () => new ServiceTable(),
        read: readService,
        isFull: ({ size }) => size >= LIMITS.clusterServices,
      },
      onObjects,
    );
    this.slices = new ClusterResource(
      {
        kind: "EndpointSlice",
        newTable: () => new SliceTable(),
        read: readSlice,
        isFull: ({ size, endpoints }) => size >= LIMITS.clusterSlices || endpoints >= LIMITS.clusterEndpoints,
      },
      onObjects,
    );
  }

  /** Whether the API confirms what is known. */
  setCurrent(isCurrent: boolean): void {
    this.#freshness.setCurrent(isCurrent);
    this.onChange();
  }

  get report(): ClusterNamesReport {
    const problems = [this.services.problems, this.slices.problems];
    return {
      services: this.services.table.size,
      endpoints: this.slices.table.endpoints,
      refused: this.services.refused + this.slices.refused,
      skipped: problems.reduce((sum, { count }) => sum + count, 0),
      problems: problems.flatMap(({ first }) => first),
      staleMs: this.#freshness.staleMs,
      isUsable: this.#freshness.isUsable,
    };
  }

  /** A node's pods have the names of their own cluster, from its own servers. */
  namesFor(_container: ContainerFact, node: NodeContext | undefined): VisibleNames | undefined {
    return node === undefined ? this.#visible() : undefined;
  }

  /** What the host resolves, if this domain is among those that it asks dns11 for. */
  namesOnHost(zones: readonly string[]): readonly VisibleNames[] {
    return zones.includes(this.#zone.name) ? [this.#visible()] : [];
  }

  #visible(): VisibleCluster {
    return new VisibleCluster(
      this.#zone,
      () => this.#lookup(),
      () => this.#freshness.isStale,
    );
  }

  /** Undefined where queries fail. */
  #lookup(): ClusterLookup | undefined {
    if (!this.#freshness.isUsable) return undefined;
    return new ClusterLookup(this.#zone, { services: this.services.table, slices: this.slices.table });
  }

  /** One without the other would deny names that exist. */
  #noteObjects(): void {
    if (this.services.hasList && this.slices.hasList) this.#freshness.setListed();
    this.onChange();
  }
}
