import { serviceData, textData } from "../../base/dns/record-data.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { addressBytes } from "../../base/model/address.ts";
import { StoredName } from "../../base/model/stored-name.ts";
import type { NameRecords, OwnedRecord, QuestionName, ZoneAuthority } from "../../base/model/visible-names.ts";
import type { DnsZone } from "../../container/names/source/dns-zone.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";
import type { ClusterEndpoint, ClusterPort, ClusterService } from "./objects.ts";
import { type ServiceTable, type SliceTable, addressKey } from "./tables.ts";

export interface ClusterTables {
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
export function pathText({ name, namespace }: ClusterService): string {
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
