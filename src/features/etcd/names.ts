import { presentation, wireLabels } from "../../base/dns/name.ts";
import { TYPE, typeName } from "../../base/dns/record-type.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import {
  MISS,
  type NameRecords,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type VisibleNames,
  type ZoneAuthority,
} from "../../base/model/visible-names.ts";
import { DnsZone, pathOf } from "../../container/names/source/dns-zone.ts";
import { type KeyProblem, KeyProblems, Freshness } from "../../container/names/source/store.ts";
import type { NameSource } from "../../container/names/source/name-source.ts";
import { nextKey, type StoredKeys } from "./client/keys.ts";
import type { StoredKey } from "./client/messages.ts";
import type { EtcdPolicy } from "./feature.ts";
import { ETCD_LIMITS } from "./limits.ts";
import { type StoredAnswer, StoreLookup, textOf } from "./lookup.ts";
import { readRecord, RecordTree } from "./records.ts";

/** A zone, and its labels in the order of keys. */
interface StoreZone {
  readonly zone: DnsZone;
  readonly path: readonly string[];
}

const NO_SETS: NameRecords["sets"] = new Map();
const KEYS_SHOWN = 3;
const TEXT_SHOWN = 100;

/** What is known, and how well. */
interface StoredReport {
  readonly records: number;
  /** The number of keys that are left out because there are too many. */
  readonly refused: number;
  /** There are more, which were not read. */
  readonly isCut: boolean;
  /** The number of keys outside of all zones. */
  readonly ignored: number;
  readonly skipped: number;
  /** The first of those that are skipped. */
  readonly problems: readonly KeyProblem[];
  /** Since when etcd has not confirmed the records, in milliseconds ago; undefined while it does. */
  readonly staleMs: number | undefined;
  /** Queries are answered. */
  readonly isUsable: boolean;
}

interface StoredNamesOptions {
  readonly now?: (() => number) | undefined;
  readonly recordsMax?: number | undefined;
}

/**
 * The records of etcd in memory as a source of names for the zones of the settings. It holds every name
 * below them: what does not exist is denied here. While etcd is away, what is known is answered for a limited time;
 * without anything known, or after it, queries fail, because to deny a name would be a guess.
 */
export class StoredNames implements NameSource, StoredKeys {
  readonly #recordsMax: number;
  readonly #policy: EtcdPolicy;
  readonly #zones: readonly StoreZone[];
  #tree = new RecordTree();
  /** What a list has brought so far. */
  #listed: RecordTree | undefined;
  readonly #problems = new KeyProblems();
  readonly #freshness: Freshness;
  readonly #leases = new Map<string, number>();
  #refused = 0;
  #ignored = 0;
  /** The list had more than was read. */
  #isCut = false;
  /** Called in the step in which answers change. */
  onChange: () => void = () => undefined;

  constructor(policy: EtcdPolicy, options: StoredNamesOptions = {}) {
    this.#policy = policy;
    this.#freshness = new Freshness(policy.staleSecondsMax, options.now);
    this.#recordsMax = options.recordsMax ?? ETCD_LIMITS.records;
    this.#zones = policy.zones.map((name) => ({ zone: new DnsZone(name), path: name.split(".").toReversed() }));
  }

  /** There has been a list. */
  get hasList(): boolean {
    return this.#freshness.hasList;
  }

  /** Whether etcd confirms what is known. */
  setCurrent(isCurrent: boolean): void {
    this.#freshness.setCurrent(isCurrent);
    this.onChange();
  }

  get report(): StoredReport {
    return {
      records: this.#tree.size,
      refused: this.#refused,
      isCut: this.#isCut,
      ignored: this.#ignored,
      skipped: this.#problems.count,
      problems: this.#problems.first,
      staleMs: this.#freshness.staleMs,
      isUsable: this.#freshness.isUsable,
    };
  }

  namesFor(): VisibleStore | undefined {
    if (this.#zones.length === 0) return undefined;
    return new VisibleStore(this.#zones, () => this.#lookup());
  }

  /** What is not valid counts as well: it has to be read. */
  after(key: string): string | undefined {
    this.#isCut = (this.#listed ?? this.#tree).size + this.#problems.count >= this.#recordsMax;
    return this.#isCut ? undefined : nextKey(key);
  }

  begin(): void {
    this.#listed = new RecordTree();
    this.#clearProblems();
  }

  commit(): void {
    this.#tree = this.#listed ?? this.#tree;
    this.#listed = undefined;
    this.#freshness.setListed();
    this.onChange();
  }

  put({ key, value, lease }: StoredKey): void {
    const tree = this.#listed ?? this.#tree;
    const labels = this.#labelsOf(key);
    if (labels === undefined) return;
    this.#problems.forget(key);
    try {
      checkLabels(labels);
      const record = readRecord(value);
      if (tree.size >= this.#recordsMax && tree.at(labels)?.record === undefined) this.#refused++;
      else tree.put(labels, record, lease);
    } catch (error) {
      tree.remove(labels);
      this.#problems.note(key, error);
    }
    if (tree === this.#tree) this.onChange();
  }

  remove(key: string): void {
    const labels = this.#labelsOf(key);
    if (labels === undefined) return;
    this.#problems.forget(key);
    (this.#listed ?? this.#tree).remove(labels);
    if (this.#listed === undefined) this.onChange();
  }

  setLease(lease: string, ttlSeconds: number): void {
    if (this.#leases.size >= ETCD_LIMITS.leases) this.#leases.delete(this.#leases.keys().next().value as string);
    const before = this.#leases.get(lease);
    this.#leases.set(lease, ttlSeconds);
    if (before !== ttlSeconds) this.onChange();
  }

  /** Undefined where queries fail. */
  #lookup(): StoreLookup | undefined {
    if (!this.#freshness.isUsable) return undefined;
    return new StoreLookup({
      tree: this.#tree,
      quirks: this.#policy.quirks,
      leaseSeconds: (lease) => this.#leases.get(lease),
      isStale: this.#freshness.isStale,
    });
  }

  /** Undefined where no zone has it. */
  #labelsOf(key: string): readonly string[] | undefined {
    const start = `${this.#policy.prefix}/`;
    const labels = key.startsWith(start) ? key.slice(start.length).split("/", LABELS_READ) : [];
    if (this.#zones.some(({ path }) => path.every((label, index) => labels[index] === label))) return labels;
    this.#ignored++;
    return undefined;
  }

  #clearProblems(): void {
    this.#problems.clear();
    this.#refused = 0;
    this.#ignored = 0;
    this.#isCut = false;
  }
}

/** More than a name can have: what is longer is refused. */
const LABELS_READ = 130;

/** Throws an Error for a key that no query can match. */
function checkLabels(labels: readonly string[]): void {
  if (labels.some((label) => label !== label.toLowerCase())) {
    throw new Error("its key has upper-case letters, and names in keys are in lower case");
  }
  const isName = labels.every((label) => label !== "" && !label.includes("."));
  if (!isName || wireLabels(labels.join(".")) === undefined) throw new Error("its key is not a domain name");
}

/**
 * The names of etcd as a container resolves them: below the zones of the settings, and nowhere else. They
 * are the same for all containers.
 */
class VisibleStore implements VisibleNames {
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
    return search.withRecords(found ?? nothing(authority, lookup === undefined), lookup?.isStale === true);
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

function keysText(keys: readonly string[]): string {
  const more = keys.length - KEYS_SHOWN;
  const shown = keys.slice(0, KEYS_SHOWN).join(", ");
  return `${keys.length === 1 ? "the record" : "the records"} ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}

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
