/**
 * StoreLookup: which records of etcd a name has. Its own key counts, and the keys one label below it that have none
 * below themselves: so SkyDNS writes several records of one name. The zone itself has those below `dns/apex`.
 */
import { TYPE } from "../../../base/dns/record-type.ts";
import { LIMITS } from "../../../base/limits.ts";
import type { EtcdQuirk } from "../../../base/model/etcd-policy.ts";
import { presentation } from "../../../base/dns/name.ts";
import type { OwnedRecord, ZoneAuthority } from "../../../base/model/visible-names.ts";
import { type RecordNode, type RecordTree, type Visits, below, newVisits, pathTo } from "./record-tree.ts";
import { type PlacedRecord, StoredAnswer, typeOf } from "./stored-answer.ts";
import type { StoredRecord } from "./stored-record.ts";

export interface StoreLookupParts {
  readonly tree: RecordTree;
  readonly quirks: readonly EtcdQuirk[];
  /** How long a lease was granted for. */
  readonly leaseSeconds: (lease: string) => number | undefined;
  /** etcd does not confirm the records at present. */
  readonly isStale: boolean;
}

/** A zone as a name is looked up in it: the labels of its keys, and its own records. */
export interface LookupZone {
  readonly path: readonly string[];
  readonly authority: ZoneAuthority;
}

/** The key below a zone with the records of the zone itself, and the one with its servers. */
const APEX = ["dns", "apex"];
const SERVERS = ["dns", "ns"];
/** CNAMEs followed for the addresses of a name that stands beside others. */
const ALIASES_MAX = LIMITS.declaredAliases;

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
    for (const node of zone === undefined ? [] : below(zone, LIMITS.etcdRecords)) {
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
    const ofTargets = visits ?? { left: LIMITS.etcdAnswerRecords };
    const { quirks, isStale } = this.#parts;
    const records = grouped(placed.toSorted((a, b) => depthOf(a.node) - depthOf(b.node))).slice(
      0,
      LIMITS.etcdAnswerRecords,
    );
    const ttl = Math.min(LIMITS.etcdLeaseSecondsMax, ...records.map((each) => this.#ttlOf(each)));
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
    if (node.lease === undefined) return own ?? LIMITS.etcdTtlSeconds;
    const { etcdLeaseSecondsMin: min, etcdLeaseSecondsMax: max } = LIMITS;
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
    const records = grouped(placed).slice(0, LIMITS.etcdAnswerRecords);
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
