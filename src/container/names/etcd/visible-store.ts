/**
 * VisibleStore: the names of etcd as a container resolves them: below the zones of the settings, and nowhere else. They
 * are the same for all containers.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import { presentation } from "../../../base/dns/name.ts";
import { TYPE, typeName } from "../../../base/dns/record-type.ts";
import {
  MISS,
  type NameRecords,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type VisibleNames,
  type ZoneAuthority,
} from "../../../base/model/visible-names.ts";
import { type DnsZone, pathOf } from "../source/dns-zone.ts";
import type { StoreLookup } from "./store-lookup.ts";
import { type StoredAnswer, textOf } from "./stored-answer.ts";

/** A zone, and its labels in the order of keys. */
export interface StoreZone {
  readonly zone: DnsZone;
  readonly path: readonly string[];
}

const NO_SETS: NameRecords["sets"] = new Map();

export class VisibleStore implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.etcd;
  readonly zones: readonly string[];
  readonly #zones: readonly StoreZone[];
  readonly #lookup: () => StoreLookup | undefined;

  /** `lookup`: what is known at the time; undefined where queries fail. */
  constructor(zones: readonly StoreZone[], lookup: () => StoreLookup | undefined) {
    this.zones = zones.map(({ zone }) => zone.name);
    this.#zones = zones;
    this.#lookup = lookup;
  }

  find(name: QuestionName, search: NameSearch): number {
    for (const each of this.#zones) {
      const labels = name.labelCount - each.zone.labelCount;
      if (labels >= 0 && each.zone.isAfter(name, labels)) return this.#answer(each, name, search);
    }
    return MISS;
  }

  /** Reverse names are in reverse zones, as names. */
  pointer(): undefined {
    return undefined;
  }

  *list(): Iterable<OwnName> {
    const lookup = this.#lookup();
    if (lookup === undefined) return;
    for (const { zone, path } of this.#zones) {
      for (const node of lookup.namesBelow(path)) {
        const answer = lookup.answerOf(node, { path, authority: zone.authority(0) });
        yield { name: textOf(node), source: `etcd, zone ${zone.name}`, holders: [], ...listed(answer) };
      }
    }
  }

  #answer({ zone, path }: StoreZone, name: QuestionName, search: NameSearch): number {
    const authority = zone.authority(search.behaviour.ttlSeconds);
    const lookup = this.#lookup();
    const found = lookup?.find(pathOf(name, name.labelCount), { path, authority });
    search.trace?.record("names", `in etcd, zone "${zone.name}": ${whyOf(lookup, found)}`);
    // While etcd is away, what is known is known for a limited time.
    return search.declared(found ?? nothing(authority, lookup === undefined), lookup?.isStale === true);
  }
}

/** There is no such name, or it is not known whether there is. */
function nothing(zone: ZoneAuthority, isUnknown: boolean): NameRecords {
  const end = isUnknown ? { isUnavailable: true } : { isMissing: true };
  return { ttlSeconds: undefined, sets: NO_SETS, alias: undefined, containers: [], zone, ...end };
}

function whyOf(lookup: StoreLookup | undefined, found: StoredAnswer | undefined): string {
  if (lookup === undefined) return "etcd cannot be reached, and nothing recent is known";
  const known = lookup.isStale ? " (last known: etcd cannot be reached)" : "";
  if (found === undefined) return `no such name${known}`;
  return found.keys.length === 0 ? `no records of its own${known}` : `${keysText(found.keys)}${known}`;
}

const KEYS_SHOWN = 3;

function keysText(keys: readonly string[]): string {
  const more = keys.length - KEYS_SHOWN;
  const shown = keys.slice(0, KEYS_SHOWN).join(", ");
  return `${keys.length === 1 ? "the record" : "the records"} ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}

const TEXT_SHOWN = 100;

function listed({ sets, alias }: StoredAnswer): Pick<OwnName, "records" | "v4" | "v6"> {
  const of = (type: number): Uint8Array => Buffer.concat(sets.get(type) ?? []);
  const others = [...sets].filter(([type]) => type !== TYPE.A && type !== TYPE.AAAA);
  const target = alias && `CNAME ${presentation(alias.spelled, 0, alias.spelled.length)}`;
  const texts = others.map(([type, all]) => `${all.length} ${typeName(type)}`);
  return {
    v4: of(TYPE.A),
    v6: of(TYPE.AAAA),
    records: [...(target === undefined ? [] : [target.slice(0, TEXT_SHOWN)]), ...texts],
  };
}
