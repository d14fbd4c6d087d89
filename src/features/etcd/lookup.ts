import { folded, presentation, wireLabels } from "../../base/dns/name.ts";
import { mailData, serviceData, textData } from "../../base/dns/record-data.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { LIMITS } from "../../base/limits.ts";
import { StoredName } from "../../base/model/label-table.ts";
import type { NameRecords, OwnedRecord, QuestionName, ZoneAuthority } from "../../base/model/visible-names.ts";
import type { EtcdQuirk } from "./feature.ts";
import { ETCD_LIMITS } from "./limits.ts";
import {
  below,
  newVisits,
  pathTo,
  type RecordNode,
  type RecordTree,
  type StoredRecord,
  type Visits,
} from "./records.ts";

/** A record and where its key is. */
interface PlacedRecord {
  readonly node: RecordNode;
  readonly record: StoredRecord;
}

/** What an answer needs of the store. */
interface AnswerParts {
  readonly placed: readonly PlacedRecord[];
  /** The one of these that is of the name's own key; undefined if there is none, or several. */
  readonly own: StoredRecord | undefined;
  /** Whether this is the name itself. */
  readonly isSelf: (target: Uint8Array) => boolean;
  readonly isReverse: boolean;
  readonly hasTextOnly: boolean;
  readonly ttlSeconds: number;
  readonly zone: ZoneAuthority;
  /** The addresses of a name in etcd; none if it is not there. */
  readonly addressesOf: (target: Uint8Array) => readonly Uint8Array[];
  /** The CNAMEs and addresses that it has there. */
  readonly chainOf: (target: Uint8Array) => readonly OwnedRecord[];
}

type Sets = Map<number, Uint8Array[]>;

/**
 * What the records of one name in etcd are as records of DNS. One record there may be several here: an
 * address, a service that points to its own key, a text, a mail server.
 */
export class StoredAnswer implements NameRecords {
  readonly ttlSeconds: number;
  readonly sets: Sets = new Map();
  readonly alias: QuestionName | undefined;
  readonly containers = [];
  readonly zone: ZoneAuthority;
  readonly isMissing = false;
  /** What its records point to, by type. */
  readonly #targets = new Map<number, Uint8Array[]>();
  /** The type and the data of each record. */
  readonly #known = new Set<string>();
  readonly #parts: AnswerParts;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
    this.ttlSeconds = parts.ttlSeconds;
    this.zone = parts.zone;
    const records = parts.placed.map(({ record }) => record);
    for (const { address } of records) if (address !== undefined) this.add(typeOf(address), address);
    for (const { text } of records) if (text !== "") this.add(TYPE.TXT, textData(Buffer.from(text)));
    for (const { placed, weight } of weighted(parts.placed)) {
      const { port, priority } = placed.record;
      this.add(TYPE.SRV, serviceData({ priority, weight, port, target: this.#targetOf(TYPE.SRV, placed) }));
    }
    for (const placed of parts.placed) {
      if (placed.record.isMail && hasHost(placed.record)) {
        this.add(TYPE.MX, mailData(placed.record.priority, this.#targetOf(TYPE.MX, placed)));
      }
    }
    this.alias = parts.isReverse ? this.#pointers(records) : this.#aliasOf(records);
  }

  /** The names of the keys that it is made of. */
  get keys(): readonly string[] {
    return this.#parts.placed.map(({ node }) => textOf(node));
  }

  /** Computed when it is needed: few types have any. */
  additional(type: number): readonly OwnedRecord[] {
    const targets = distinct(this.#targets.get(type) ?? [], textKey).slice(0, ETCD_LIMITS.answerRecords);
    const records = targets.flatMap((target) => this.#parts.chainOf(target));
    return distinct(records, ({ owner, data }) => `${textKey(owner)} ${textKey(data)}`);
  }

  /** What another record that points to this name needs: its CNAME, or its addresses. */
  get addresses(): readonly Uint8Array[] {
    return [...(this.sets.get(TYPE.A) ?? []), ...(this.sets.get(TYPE.AAAA) ?? [])];
  }

  /** Adds one record, unless it is there or there are enough. */
  add(type: number, data: Uint8Array): void {
    const all = this.sets.get(type) ?? [];
    const key = `${type} ${textKey(data)}`;
    if (all.length === ETCD_LIMITS.answerRecords || this.#known.has(key)) return;
    this.#known.add(key);
    all.push(data);
    this.sets.set(type, all);
  }

  /** A server of the zone. */
  addServer(placed: PlacedRecord): void {
    if (hasHost(placed.record)) this.add(TYPE.NS, this.#targetOf(TYPE.NS, placed));
  }

  /** What a service, mail server or name server points to: its host, or the name of its key where that is an address. */
  #targetOf(type: number, { node, record }: PlacedRecord): Uint8Array {
    const target = stripped(record.target ?? nameOf(node), record.strip);
    this.#targets.set(type, [...(this.#targets.get(type) ?? []), target]);
    return target;
  }

  #pointers(records: readonly StoredRecord[]): undefined {
    for (const { target } of records) if (target !== undefined) this.add(TYPE.PTR, target);
  }

  /**
   * The one name that it stands for. Of several only the addresses can be in an answer. Where its own key has one, the keys below
   * are names of their own, because nothing else can be beside a CNAME.
   */
  #aliasOf(records: readonly StoredRecord[]): QuestionName | undefined {
    const { addressesOf, own } = this.#parts;
    const ownTarget = own && this.#aliasTarget(own);
    if (ownTarget !== undefined) {
      for (const type of [TYPE.A, TYPE.AAAA]) this.sets.delete(type);
      return storedName(ownTarget);
    }
    const targets = records.flatMap((record) => this.#aliasTarget(record) ?? []);
    const [first, ...others] = targets;
    if (first === undefined) return undefined;
    const hasAddresses = this.sets.has(TYPE.A) || this.sets.has(TYPE.AAAA);
    if (!hasAddresses && others.every((each) => isSame(each, first))) return storedName(first);
    for (const target of targets.slice(0, ETCD_LIMITS.answerRecords))
      for (const address of addressesOf(target)) this.add(typeOf(address), address);
    return this.sets.has(TYPE.A) || this.sets.has(TYPE.AAAA) ? undefined : storedName(first);
  }

  #aliasTarget({ target, text }: StoredRecord): Uint8Array | undefined {
    const { hasTextOnly, isSelf } = this.#parts;
    return target === undefined || isSelf(target) || (hasTextOnly && text !== "") ? undefined : target;
  }
}

/** The name of a key on the wire, with the terminating zero. */
function nameOf(node: RecordNode): Uint8Array {
  const labels = wireLabels(pathTo(node).toReversed().join("."));
  return Uint8Array.of(...(labels ?? []), 0);
}

/** The name that a key has, as text. */
export function textOf(node: RecordNode): string {
  return pathTo(node).toReversed().join(".");
}

/** The share of each service in those of its priority, in percent and at least 1, as SkyDNS computes it. */
function weighted(all: readonly PlacedRecord[]): { readonly placed: PlacedRecord; readonly weight: number }[] {
  const services = all.filter(({ record }) => hasHost(record) && record.port !== -1);
  const sums = new Map<number, number>();
  for (const { record } of services) sums.set(record.priority, (sums.get(record.priority) ?? 0) + weightOf(record));
  return services.map((placed) => {
    const share = (PERCENT * weightOf(placed.record)) / (sums.get(placed.record.priority) ?? 1);
    return { placed, weight: Math.max(1, Math.floor(share)) };
  });
}

const PERCENT = 100;

function weightOf({ weight }: StoredRecord): number {
  return weight === 0 ? PERCENT : weight;
}

function hasHost({ address, target }: StoredRecord): boolean {
  return address !== undefined || target !== undefined;
}

/** Without its first labels; as it is where it has no more than those. */
function stripped(name: Uint8Array, labels: number): Uint8Array {
  let at = 0;
  for (let left = labels; left > 0 && (name[at] as number) > 0; left--) at += 1 + (name[at] as number);
  return (name[at] as number) > 0 ? name.subarray(at) : name;
}

function typeOf(address: Uint8Array): number {
  return address.length === 4 ? TYPE.A : TYPE.AAAA;
}

function storedName(target: Uint8Array): QuestionName {
  return new StoredName(target.subarray(0, -1));
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(folded(one), folded(other)) === 0;
}

function textKey(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}

/** The first of those with the same key. */
function distinct<T>(all: readonly T[], keyOf: (each: T) => string): T[] {
  return [...new Map(all.toReversed().map((each) => [keyOf(each), each])).values()].toReversed();
}

interface StoreLookupParts {
  readonly tree: RecordTree;
  readonly quirks: readonly EtcdQuirk[];
  /** How long a lease was granted for. */
  readonly leaseSeconds: (lease: string) => number | undefined;
  /** etcd does not confirm the records at present. */
  readonly isStale: boolean;
}

/** A zone as a name is looked up in it: the labels of its keys, and its own records. */
interface LookupZone {
  readonly path: readonly string[];
  readonly authority: ZoneAuthority;
}

/** The key below a zone with the records of the zone itself, and the one with its servers. */
const APEX = ["dns", "apex"];
const SERVERS = ["dns", "ns"];
/** CNAMEs followed for the addresses of a name that stands beside others. */
const ALIASES_MAX = LIMITS.declaredAliases;

/**
 * Which records of etcd a name has. Its own key counts, and the keys one label below it that have none
 * below themselves: so SkyDNS writes several records of one name. The zone itself has those below `dns/apex`.
 */
export class StoreLookup {
  readonly #parts: StoreLookupParts;

  constructor(parts: StoreLookupParts) {
    this.#parts = parts;
  }

  get isStale(): boolean {
    return this.#parts.isStale;
  }

  /** `path`: the labels of the name, as in a key. undefined: there is no such name. */
  find(path: readonly string[], zone: LookupZone): StoredAnswer | undefined {
    const isApex = path.length === zone.path.length;
    const nodes = this.#parts.tree.matching(path);
    if (nodes.length === 0 && !isApex) return undefined;
    const placed = isApex ? this.#apexRecords(zone.path) : this.#recordsOf(nodes, newVisits());
    const answer = this.#answer(path, placed, zone);
    if (isApex) {
      answer.add(TYPE.SOA, zone.authority.soa);
      const servers = this.#recordsOf(this.#parts.tree.matching([...zone.path, ...SERVERS]), newVisits());
      for (const server of servers) answer.addServer(server);
    }
    return answer;
  }

  /** The names below a zone that have records, except the members of others. */
  *namesBelow(path: readonly string[]): Iterable<RecordNode> {
    const zone = this.#parts.tree.at(path);
    for (const node of zone === undefined ? [] : below(zone, ETCD_LIMITS.records)) {
      const isMember = node.children === undefined && node.parent !== zone && node.parent?.record === undefined;
      if (!isMember && memberRecords(node, newVisits()).length > 0) yield node;
    }
  }

  /** A name with its records, as a list shows it. */
  answerOf(node: RecordNode, zone: LookupZone): StoredAnswer {
    return this.#answer(pathTo(node), this.#recordsOf([node], newVisits()), zone);
  }

  /** `visits`: what is left of them where the answer is part of another one. */
  #answer(path: readonly string[], placed: readonly PlacedRecord[], zone: LookupZone, visits?: Visits): StoredAnswer {
    const ofAliases = visits ?? newVisits();
    // What they point to is only additional: no more than an answer may have.
    const ofTargets = visits ?? { left: ETCD_LIMITS.answerRecords };
    const { quirks, isStale } = this.#parts;
    const records = grouped(placed.toSorted((a, b) => depthOf(a.node) - depthOf(b.node))).slice(
      0,
      ETCD_LIMITS.answerRecords,
    );
    const ttl = Math.min(ETCD_LIMITS.leaseSecondsMax, ...records.map((each) => this.#ttlOf(each)));
    const owns = records.filter(({ node }) => depthOf(node) === path.length);
    return new StoredAnswer({
      placed: records,
      own: owns.length === 1 ? owns[0]?.record : undefined,
      isSelf: (target) => isSamePath(pathOfTarget(target), path),
      isReverse: zone.path[0] === "arpa",
      hasTextOnly: quirks.includes("text-only"),
      ttlSeconds: isStale ? Math.min(ttl, LIMITS.staleTtlSeconds) : ttl,
      zone: zone.authority,
      addressesOf: (target) => this.#addressesOf(pathOfTarget(target), ofAliases, 0),
      chainOf: (target) => this.#chainOf(target, zone, ofTargets),
    });
  }

  #apexRecords(zonePath: readonly string[]): PlacedRecord[] {
    const { tree, quirks } = this.#parts;
    const own = this.#recordsOf(tree.matching([...zonePath, ...APEX]), newVisits());
    const isSubtree = own.length === 0 && quirks.includes("subtree");
    return isSubtree ? this.#recordsOf(tree.matching(zonePath), newVisits()) : own;
  }

  #recordsOf(nodes: readonly RecordNode[], visits: Visits): PlacedRecord[] {
    const isSubtree = this.#parts.quirks.includes("subtree");
    const placed: PlacedRecord[] = [];
    for (const node of nodes) {
      if (visits.left-- <= 0) break;
      placed.push(...(isSubtree ? subtreeRecords(node, visits) : memberRecords(node, visits)));
    }
    return placed;
  }

  /** The smaller of its own TTL and that of its lease. */
  #ttlOf({ node, record }: PlacedRecord): number {
    const own = record.ttlSeconds === 0 ? undefined : record.ttlSeconds;
    if (node.lease === undefined) return own ?? ETCD_LIMITS.ttlSeconds;
    const { leaseSecondsMin: min, leaseSecondsMax: max } = ETCD_LIMITS;
    const lease = Math.min(max, Math.max(min, this.#parts.leaseSeconds(node.lease) ?? min));
    return Math.min(own ?? lease, lease);
  }

  /** Its CNAMEs and what they lead to; nothing where they form a loop. */
  #chainOf(target: Uint8Array, zone: LookupZone, visits: Visits): readonly OwnedRecord[] {
    const chain: OwnedRecord[] = [];
    for (let owner = target; chain.length <= ALIASES_MAX;) {
      const path = pathOfTarget(owner);
      const placed = this.#recordsOf(this.#parts.tree.matching(path, visits), visits);
      const { alias, addresses } = this.#answer(path, placed, zone, visits);
      if (alias === undefined) return [...chain, ...addresses.map((data) => ({ owner, type: typeOf(data), data }))];
      const data = Uint8Array.of(...alias.spelled, 0);
      chain.push({ owner, type: TYPE.CNAME, data });
      owner = data;
    }
    return [];
  }

  /** Also through names that stand for others; none where they form a loop. */
  #addressesOf(path: readonly string[], visits: Visits, depth: number): readonly Uint8Array[] {
    if (depth > ALIASES_MAX) return [];
    const placed = this.#recordsOf(this.#parts.tree.matching(path, visits), visits);
    const records = grouped(placed).slice(0, ETCD_LIMITS.answerRecords);
    const addresses = records.flatMap(({ record: { address } }) => address ?? []);
    if (addresses.length > 0) return addresses;
    const target = records.find(({ record }) => record.target !== undefined)?.record.target;
    return target === undefined ? [] : this.#addressesOf(pathOfTarget(target), visits, depth + 1);
  }
}

/** The labels of a name on the wire, as in a key. */
function pathOfTarget(target: Uint8Array): readonly string[] {
  return presentation(target, 0, target.length).toLowerCase().split(".").toReversed();
}

function isSamePath(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((label, index) => label === other[index]);
}

/** Its own record, and those of the keys below it that are no names themselves. */
function memberRecords(node: RecordNode, visits: Visits): PlacedRecord[] {
  const found = placedAt(node);
  for (const child of node.children?.values() ?? []) {
    if (visits.left-- <= 0) break;
    if (child.children === undefined) found.push(...placedAt(child));
  }
  return found;
}

/** CoreDNS does the same: all records below it; its own only where there are none. */
function subtreeRecords(node: RecordNode, visits: Visits): PlacedRecord[] {
  const records: PlacedRecord[] = [];
  for (const each of below(node, visits.left)) {
    visits.left--;
    records.push(...placedAt(each));
  }
  return records.length > 0 ? records : placedAt(node);
}

function placedAt(node: RecordNode): PlacedRecord[] {
  const { record } = node;
  return record === undefined ? [] : [{ node, record }];
}

/**
 * Records of a group belong together: the group of the shortest keys counts, unless they differ in it, and records of
 * other groups are left out.
 */
function grouped(placed: readonly PlacedRecord[]): readonly PlacedRecord[] {
  const shortest = Math.min(...placed.map(({ node }) => depthOf(node)));
  const groups = new Set(
    placed.flatMap(({ node, record: { group } }) => (group !== "" && depthOf(node) === shortest ? [group] : [])),
  );
  const [group] = groups;
  if (groups.size !== 1) return placed;
  const belongs = ({ group: other }: StoredRecord): boolean => other === "" || other === group;
  return placed.filter(({ record }) => belongs(record));
}

function depthOf(node: RecordNode): number {
  let depth = 0;
  for (let at = node.parent; at !== undefined; at = at.parent) depth++;
  return depth;
}
