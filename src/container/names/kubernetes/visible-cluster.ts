/**
 * VisibleCluster: the names of a cluster as a container resolves them: below its domain, and the reverse names of its addresses.
 * They are the same for all containers.
 */
import { presentation } from "../../../base/dns/name.ts";
import { TYPE, typeName } from "../../../base/dns/record-type.ts";
import { LIMITS } from "../../../base/limits.ts";
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import {
  MISS,
  type NameRecords,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type ReverseName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import { reverseKey } from "./address-key.ts";
import { type DnsZone, pathOf } from "../source/dns-zone.ts";
import { type ClusterLookup, pathText } from "./cluster-lookup.ts";

const NO_SETS: NameRecords["sets"] = new Map();
const TEXT_SHOWN = 100;

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
    const authority = this.#zone.authority(LIMITS.clusterTtlSeconds);
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
    return target && { target, ttlSeconds: LIMITS.clusterTtlSeconds, isTimed: this.#isStale() };
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
