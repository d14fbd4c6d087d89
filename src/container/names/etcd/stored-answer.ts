/**
 * StoredAnswer: what the records of one name in etcd are as records of DNS. One record there may be several here: an
 * address, a service that points to its own key, a text, a mail server.
 */
import { mailData, serviceData, textData } from "../../../base/dns/record-data.ts";
import { TYPE } from "../../../base/dns/record-type.ts";
import { folded, wireLabels } from "../../../base/dns/name.ts";
import { LIMITS } from "../../../base/limits.ts";
import { StoredName } from "../../../base/model/stored-name.ts";
import type { NameRecords, OwnedRecord, QuestionName, ZoneAuthority } from "../../../base/model/visible-names.ts";
import { type RecordNode, pathTo } from "./record-tree.ts";
import type { StoredRecord } from "./stored-record.ts";

/** A record and where its key is. */
export interface PlacedRecord {
  readonly node: RecordNode;
  readonly record: StoredRecord;
}

/** What an answer needs of the store. */
export interface AnswerParts {
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
    const targets = distinct(this.#targets.get(type) ?? [], textKey).slice(0, LIMITS.etcdAnswerRecords);
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
    if (all.length === LIMITS.etcdAnswerRecords || this.#known.has(key)) return;
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
    for (const target of targets.slice(0, LIMITS.etcdAnswerRecords))
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

export function typeOf(address: Uint8Array): number {
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
