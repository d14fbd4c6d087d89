import { presentation } from "../../base/dns/name.ts";
import { TYPE, typeName } from "../../base/dns/record-type.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import {
  MISS,
  type NameRecords,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type ReverseName,
  type VisibleNames,
} from "../../base/model/visible-names.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { DnsZone, pathOf } from "../../container/names/source/dns-zone.ts";
import { Freshness } from "../../container/names/source/freshness.ts";
import type { KeyProblem } from "../../container/names/source/key-problems.ts";
import type { HostContext, NameSource, NodeContext } from "../../container/names/source/name-source.ts";
import type { ClusterSettings } from "./feature.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";
import { ClusterLookup, pathText } from "./lookup.ts";
import { type ClusterService, type ClusterSlice, readService, readSlice } from "./objects.ts";
import { ClusterResource, ServiceTable, SliceTable, reverseKey } from "./tables.ts";

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

/**
 * The names of a Kubernetes cluster in memory, as a source of names for its domain. It holds every name below
 * it: what does not exist is denied here. While the API is away, what is known is answered for a limited time; without
 * anything known, or after it, queries fail, because to deny a name would be a guess.
 */
export class ClusterNames implements NameSource {
  readonly #zone: DnsZone;
  readonly #freshness: Freshness;
  readonly services: ClusterResource<ClusterService, ServiceTable>;
  readonly slices: ClusterResource<ClusterSlice, SliceTable>;
  /** Called in the step in which answers change. */
  onChange: () => void = () => undefined;

  constructor(policy: Pick<ClusterSettings, "zone" | "staleSecondsMax">, now?: () => number) {
    this.#zone = new DnsZone(policy.zone);
    this.#freshness = new Freshness(policy.staleSecondsMax, now);
    const onObjects = (): void => this.#noteObjects();
    this.services = new ClusterResource(
      {
        kind: "Service",
        newTable: () => new ServiceTable(),
        read: readService,
        isFull: ({ size }) => size >= KUBERNETES_LIMITS.services,
      },
      onObjects,
    );
    this.slices = new ClusterResource(
      {
        kind: "EndpointSlice",
        newTable: () => new SliceTable(),
        read: readSlice,
        isFull: ({ size, endpoints }) => size >= KUBERNETES_LIMITS.slices || endpoints >= KUBERNETES_LIMITS.endpoints,
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
  namesForHost({ zones }: Pick<HostContext, "zones">): readonly VisibleNames[] {
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

const NO_SETS: NameRecords["sets"] = new Map();
const TEXT_SHOWN = 100;

/**
 * The names of a cluster as a container resolves them: below its domain, and the reverse names of its addresses.
 * They are the same for all containers.
 */
export class VisibleCluster implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.kubernetes;
  readonly zones: readonly string[];
  readonly #zone: DnsZone;
  readonly #lookup: () => ClusterLookup | undefined;
  readonly #isStale: () => boolean;

  /** `lookup`: what is known at the time; undefined where queries fail. */
  constructor(zone: DnsZone, lookup: () => ClusterLookup | undefined, isStale: () => boolean) {
    this.zones = [zone.name];
    this.#zone = zone;
    this.#lookup = lookup;
    this.#isStale = isStale;
  }

  find(name: QuestionName, search: NameSearch): number {
    const labels = name.labelCount - this.#zone.labelCount;
    if (labels < 0 || !this.#zone.isAfter(name, labels)) return MISS;
    const authority = this.#zone.authority(KUBERNETES_LIMITS.ttlSeconds);
    const lookup = this.#lookup();
    const found = lookup?.find(pathOf(name, labels), authority);
    search.trace?.record("names", `in Kubernetes, zone "${this.#zone.name}": ${this.#whyOf(lookup, found)}`);
    const end = lookup === undefined ? { isUnavailable: true } : { isMissing: true };
    const nothing = { ttlSeconds: undefined, sets: NO_SETS, alias: undefined, containers: [], zone: authority, ...end };
    // While the API is away, what is known is known for a limited time.
    return search.declared(found ?? nothing, this.#isStale());
  }

  pointer(labels: Uint8Array, length: number): ReverseName | undefined {
    const key = reverseKey(labels, length);
    const target = key === undefined ? undefined : this.#lookup()?.pointer(key);
    return target && { target, ttlSeconds: KUBERNETES_LIMITS.ttlSeconds, isTimed: this.#isStale() };
  }

  *list(): Iterable<OwnName> {
    const lookup = this.#lookup();
    if (lookup === undefined) return;
    for (const service of lookup.services) {
      const records = lookup.recordsOf(service, [], this.#zone.authority(0));
      if (records === undefined) continue;
      const source = `Kubernetes, zone ${this.#zone.name}`;
      yield { name: `${pathText(service)}.${this.#zone.name}`, source, holders: [], ...listed(records) };
    }
  }

  #whyOf(lookup: ClusterLookup | undefined, found: NameRecords | undefined): string {
    if (lookup === undefined) return "its API cannot be reached, and nothing recent is known";
    const known = this.#isStale() ? " (last known: its API cannot be reached)" : "";
    return `${found === undefined ? "no such name" : typesText(found)}${known}`;
  }
}

function typesText({ sets, alias }: NameRecords): string {
  const types = [...sets].map(([type, all]) => `${all.length} ${typeName(type)}`);
  const all = alias === undefined ? types : [...types, aliasText(alias)];
  return all.length === 0 ? "no records of its own" : all.join(", ");
}

function aliasText({ spelled }: QuestionName): string {
  return `CNAME ${presentation(spelled, 0, spelled.length)}`.slice(0, TEXT_SHOWN);
}

function listed({ sets, alias }: NameRecords): Pick<OwnName, "records" | "v4" | "v6"> {
  const of = (type: number): Uint8Array => Buffer.concat(sets.get(type) ?? []);
  return { v4: of(TYPE.A), v6: of(TYPE.AAAA), records: alias === undefined ? [] : [aliasText(alias)] };
}
