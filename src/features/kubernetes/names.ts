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
  type OwnedRecord,
  type ZoneAuthority,
} from "../../base/model/visible-names.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { DnsZone, pathOf } from "../../container/names/source/dns-zone.ts";
import { type KeyProblem, Freshness } from "../../container/names/source/store.ts";
import type { HostContext, NameSource, NodeContext } from "../../container/names/source/name-source.ts";
import type { ClusterSettings } from "./feature.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";
import {
  type ClusterService,
  type ClusterSlice,
  readService,
  readSlice,
  type ClusterEndpoint,
  type ClusterPort,
} from "./objects.ts";
import { ClusterResource, ServiceTable, SliceTable, reverseKey, addressKey } from "./tables.ts";
import { serviceData, textData } from "../../base/dns/record-data.ts";
import { addressBytes } from "../../base/model/address.ts";
import { StoredName } from "../../base/model/label-table.ts";

/** What is known, and how well. */
interface ClusterNamesReport {
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

const NO_RECORDS: NameRecords["sets"] = new Map();
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
    const nothing = {
      ttlSeconds: undefined,
      sets: NO_RECORDS,
      alias: undefined,
      containers: [],
      zone: authority,
      ...end,
    };
    // While the API is away, what is known is known for a limited time.
    return search.withRecords(found ?? nothing, this.#isStale());
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

interface ClusterTables {
  readonly services: ServiceTable;
  readonly slices: SliceTable;
}

/** An endpoint that counts, and the ports of its slice. */
interface Member {
  readonly endpoint: ClusterEndpoint;
  readonly ports: readonly ClusterPort[];
}

type Sets = Map<number, readonly Uint8Array[]>;

const SCHEMA_VERSION = "1.1.0";
const PRIORITY = 0;
const WEIGHT = 100;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;
const NO_SETS: Sets = new Map();

/**
 * The records of a cluster's names, as the specification of Kubernetes has them (version 1.1.0), and the
 * names `SERVICE.NAMESPACE.endpoints.ZONE` of OpenShift's SkyDNS.
 */
export class ClusterLookup {
  readonly #zone: DnsZone;
  readonly #tables: ClusterTables;

  constructor(zone: DnsZone, tables: ClusterTables) {
    this.#zone = zone;
    this.#tables = tables;
  }

  get services(): Iterable<ClusterService> {
    return this.#tables.services.all();
  }

  /** `path`: the labels of a name below the zone, the last of them first. Undefined: there is no such name. */
  find(path: readonly string[], authority: ZoneAuthority): NameRecords | undefined {
    const [kind, namespace, name, ...rest] = path;
    const records = (sets: Sets): NameRecords => this.#records(sets, authority);
    if (kind === undefined) return records(new Map([[TYPE.SOA, [authority.soa]]]));
    if (kind === "dns-version" && namespace === undefined) {
      return records(new Map([[TYPE.TXT, [textData(Buffer.from(SCHEMA_VERSION))]]]));
    }
    if (kind === "pod") return this.#podOf(path.slice(1), authority);
    if (kind !== "svc" && kind !== "endpoints") return undefined;
    if (namespace === undefined) return records(NO_SETS);
    if (name === undefined) return this.#tables.services.hasNamespace(namespace) ? records(NO_SETS) : undefined;
    const service = this.#tables.services.get({ namespace, name });
    if (service === undefined) return undefined;
    if (kind === "svc") return this.recordsOf(service, rest, authority);
    const members = rest.length > 0 ? [] : this.#membersOf(service);
    return members.length === 0 ? undefined : records(endpointSets(members.map(({ endpoint }) => endpoint)));
  }

  /** The records of a service, or of a name below it. */
  recordsOf(service: ClusterService, below: readonly string[], authority: ZoneAuthority): NameRecords | undefined {
    const { externalName, isHeadless, addresses } = service;
    if (externalName !== undefined) {
      return below.length > 0 ? undefined : this.#records(NO_SETS, authority, new StoredName(externalName));
    }
    const [first, second, ...more] = below;
    if (more.length > 0) return undefined;
    if (first !== undefined && !first.startsWith("_")) {
      const named = isHeadless && second === undefined ? this.#labelled(service, first) : [];
      return named.length === 0 ? undefined : this.#records(endpointSets(named), authority);
    }
    const members = isHeadless ? this.#membersOf(service) : [];
    if (isHeadless && members.length === 0) return undefined;
    if (first !== undefined) return this.#portOf(service, members, first.slice(1), second, authority);
    const sets = isHeadless ? endpointSets(members.map(({ endpoint }) => endpoint)) : setsOf(addresses);
    return this.#records(sets, authority);
  }

  /** The name of an address: of a service, or of an endpoint of a headless one. By the key of `addressKey`. */
  pointer(address: string): Uint8Array | undefined {
    const { services, slices } = this.#tables;
    const service = services.at(address);
    if (service !== undefined) return this.#zone.wireName(pathText(service));
    for (const endpoint of atMost(slices.at(address), KUBERNETES_LIMITS.visits)) {
      const owner = services.get(endpoint.service);
      if (owner?.isHeadless === true && isCounted(endpoint, owner))
        return this.#zone.wireName(`${endpoint.label}.${pathText(owner)}`);
    }
    return undefined;
  }

  /** `_PROTOCOL`, and `_PORT._PROTOCOL` with one SRV record for the service, or for each endpoint of a headless one. */
  #portOf(
    service: ClusterService,
    members: readonly Member[],
    protocol: string,
    portLabel: string | undefined,
    authority: ZoneAuthority,
  ): NameRecords | undefined {
    const isNamed = (port: ClusterPort): boolean => port.name !== "" && port.protocol === protocol;
    if (portLabel === undefined) {
      const isKnown = [service, ...members].some(({ ports }) => ports.some(isNamed));
      return isKnown ? this.#records(NO_SETS, authority) : undefined;
    }
    if (!portLabel.startsWith("_")) return undefined;
    const path = pathText(service);
    const targets = service.isHeadless
      ? members.map(({ endpoint, ports }) => ({ ...endpoint, text: `${endpoint.label}.${path}`, ports }))
      : [{ ...service, text: path }];
    const owners = new Map<string, OwnedRecord[]>();
    const data: Uint8Array[] = [];
    for (const { text, addresses, ports } of targets) {
      const port = ports.find((each) => isNamed(each) && each.name === portLabel.slice(1))?.port;
      if (port === undefined) continue;
      const target = this.#zone.wireName(text);
      if (target === undefined) continue;
      const owned = owners.get(text) ?? [];
      if (!owners.has(text)) data.push(serviceData({ priority: PRIORITY, weight: WEIGHT, port, target }));
      owned.push(...ownedBy(target, addresses));
      owners.set(text, owned);
    }
    if (data.length === 0) return undefined;
    const records = this.#records(new Map([[TYPE.SRV, data]]), authority);
    return { ...records, additional: (type) => (type === TYPE.SRV ? [...owners.values()].flat() : []) };
  }

  /** `A-B-C-D.NAMESPACE.pod`: whatever address the name says. */
  #podOf([namespace, label, ...more]: readonly string[], authority: ZoneAuthority): NameRecords | undefined {
    if (more.length > 0) return undefined;
    if (label === undefined) return this.#records(NO_SETS, authority);
    const address = /^\d+-\d+-\d+-\d+$/.test(label) ? label.replaceAll("-", ".") : label.replaceAll("-", ":");
    const bytes = namespace === undefined ? undefined : addressBytes(address);
    return bytes && this.#records(setsOf([bytes]), authority);
  }

  /** The first that count. Every slice and endpoint that is visited has one or is one. */
  #membersOf(service: ClusterService): readonly Member[] {
    const { slices } = this.#tables;
    const members: Member[] = [];
    for (const slice of service.countsUnready ? slices.of(service) : slices.readyOf(service)) {
      for (const endpoint of service.countsUnready ? slice.endpoints : slice.ready) {
        if (members.length >= KUBERNETES_LIMITS.answerRecords) return members;
        members.push({ endpoint, ports: slice.ports });
      }
    }
    return members;
  }

  #labelled(service: ClusterService, label: string): readonly ClusterEndpoint[] {
    return atMost(this.#tables.slices.labelled(service, label), KUBERNETES_LIMITS.visits)
      .filter((endpoint) => isCounted(endpoint, service))
      .slice(0, KUBERNETES_LIMITS.answerRecords);
  }

  #records(sets: Sets, zone: ZoneAuthority, alias?: QuestionName): NameRecords {
    return { ttlSeconds: KUBERNETES_LIMITS.ttlSeconds, sets, alias, containers: [], zone };
  }
}

/** Its name below the zone. */
function pathText({ name, namespace }: ClusterService): string {
  return `${name}.${namespace}.svc`;
}

function isCounted({ isReady }: ClusterEndpoint, { countsUnready }: ClusterService): boolean {
  return isReady || countsUnready;
}

function endpointSets(endpoints: readonly ClusterEndpoint[]): Sets {
  return setsOf(endpoints.flatMap(({ addresses }) => addresses));
}

/** Each address once: it may be in several slices. */
function setsOf(addresses: readonly Uint8Array[]): Sets {
  const distinct = [...new Map(addresses.map((address) => [addressKey(address), address])).values()];
  const of = (bytes: number): readonly Uint8Array[] => distinct.filter(({ length }) => length === bytes);
  const [v4, v6] = [of(IPV4_BYTES), of(IPV6_BYTES)];
  return new Map([
    ...(v4.length > 0 ? [[TYPE.A, v4] as const] : []),
    ...(v6.length > 0 ? [[TYPE.AAAA, v6] as const] : []),
  ]);
}

function ownedBy(owner: Uint8Array, addresses: readonly Uint8Array[]): OwnedRecord[] {
  return addresses.map((data) => ({ owner, type: data.length === IPV4_BYTES ? TYPE.A : TYPE.AAAA, data }));
}

function atMost<T>(all: Iterable<T>, max: number): T[] {
  const some: T[] = [];
  for (const each of all) {
    if (some.length >= max) break;
    some.push(each);
  }
  return some;
}
