import { wireLabels } from "../../base/dns/name.ts";
import { unmappedBytesOf } from "../../base/model/address.ts";
import { jsonObject } from "../../container/names/source/store.ts";
import { ETCD_LIMITS } from "./limits.ts";

/**
 * One record of etcd, in the schema of SkyDNS as CoreDNS reads it: a JSON object that may be an address or a CNAME, a service, a text
 * and a mail server at once.
 */
export interface StoredRecord {
  /** Its host is one of them or none: an address, or wire labels with the terminating zero. */
  readonly address: Uint8Array | undefined;
  readonly target: Uint8Array | undefined;
  /** -1: it is no service. */
  readonly port: number;
  readonly priority: number;
  /** 0: none was given. */
  readonly weight: number;
  readonly text: string;
  readonly isMail: boolean;
  /** 0: none was given. */
  readonly ttlSeconds: number;
  /** How many labels in front a target loses. */
  readonly strip: number;
  readonly group: string;
  /** The machine of the dns11 that has published it. */
  readonly machine: string;
}

const DEFAULT_PRIORITY = 10;
const U16_MAX = 65_535;
const TTL_MAX = 2_147_483_647;
const LABELS_MAX = 127;
const TEXT_BYTES_MAX = 4096;
const GROUP_CHARS_MAX = 255;

/** Throws an Error with the reason. */
export function readRecord(value: Buffer | undefined): StoredRecord {
  if (value === undefined || value.length > ETCD_LIMITS.valueBytes) {
    throw new Error(`the value has more than ${ETCD_LIMITS.valueBytes} bytes`);
  }
  const fields = readFields(value);
  const host = stringIn(fields, "host", ETCD_LIMITS.valueBytes);
  const text = stringIn(fields, "text", TEXT_BYTES_MAX);
  if (host === "" && text === "") throw new Error("it has neither a host nor a text");
  const address = host.includes("%") ? undefined : unmappedBytesOf(host);
  const isName = host !== "" && address === undefined;
  return {
    address,
    target: isName ? targetOf(host) : undefined,
    port: numberIn(fields, "port", -1, U16_MAX),
    priority: numberIn(fields, "priority", 0, U16_MAX) || DEFAULT_PRIORITY,
    weight: numberIn(fields, "weight", 0, U16_MAX),
    text,
    isMail: booleanIn(fields, "mail"),
    ttlSeconds: numberIn(fields, "ttl", 0, TTL_MAX),
    strip: numberIn(fields, "targetstrip", 0, LABELS_MAX),
    group: stringIn(fields, "group", GROUP_CHARS_MAX),
    machine: stringIn(fields, "machine", GROUP_CHARS_MAX),
  };
}

type Fields = ReadonlyMap<string, unknown>;

function readFields(value: Buffer): Fields {
  // The programs that wrote these records ignore the letter case of fields.
  return new Map(Object.entries(jsonObject(value)).map(([key, field]) => [key.toLowerCase(), field]));
}

function stringIn(fields: Fields, key: string, bytesMax: number): string {
  const field = fields.get(key) ?? "";
  if (typeof field !== "string") throw new Error(`its ${key} is not a string`);
  if (Buffer.byteLength(field) > bytesMax) throw new Error(`its ${key} has more than ${bytesMax} bytes`);
  return field;
}

function numberIn(fields: Fields, key: string, min: number, max: number): number {
  const field = fields.get(key) ?? 0;
  if (typeof field === "number" && Number.isInteger(field) && field >= min && field <= max) return field;
  throw new Error(`its ${key} is not a whole number from ${min} to ${max}`);
}

function booleanIn(fields: Fields, key: string): boolean {
  const field = fields.get(key) ?? false;
  if (typeof field !== "boolean") throw new Error(`its ${key} is neither true nor false`);
  return field;
}

function targetOf(host: string): Uint8Array {
  const labels = wireLabels(host.replace(/\.$/, ""));
  if (labels === undefined || /[*:%/]/.test(host)) throw new Error("its host is neither an address nor a domain name");
  return Uint8Array.of(...labels, 0);
}

export interface RecordNode {
  readonly label: string;
  readonly parent: RecordNode | undefined;
  record: StoredRecord | undefined;
  /** The lease of the record. */
  lease: string | undefined;
  children: Map<string, RecordNode> | undefined;
}

/** What a query may still visit. */
export interface Visits {
  left: number;
}

export function newVisits(): Visits {
  return { left: ETCD_LIMITS.visits };
}

/** In SkyDNS they match every label. */
const ANY: ReadonlySet<string> = new Set(["*", "any"]);
/** In a key it stands for every name that no other key has (RFC 4592). */
const WILDCARD = "*";
const NONE: ReadonlyMap<string, RecordNode> = new Map();

/**
 * The records of etcd by the labels of their keys, which are those of their names from the last one on. A
 * key is also the parent of longer ones.
 */
export class RecordTree {
  readonly root: RecordNode = newNode("", undefined);
  #size = 0;

  /** How many records it has. */
  get size(): number {
    return this.#size;
  }

  at(labels: readonly string[]): RecordNode | undefined {
    let node: RecordNode | undefined = this.root;
    for (const label of labels) node = node?.children?.get(label);
    return node;
  }

  put(labels: readonly string[], record: StoredRecord, lease: string | undefined): void {
    let node = this.root;
    for (const label of labels) {
      node.children ??= new Map();
      const child = node.children.get(label) ?? newNode(label, node);
      node.children.set(label, child);
      node = child;
    }
    if (node.record === undefined) this.#size++;
    node.record = record;
    node.lease = lease;
  }

  remove(labels: readonly string[]): void {
    const node = this.at(labels);
    if (node?.record === undefined) return;
    node.record = undefined;
    node.lease = undefined;
    this.#size--;
    for (let empty = node; empty.parent !== undefined && isEmpty(empty); empty = empty.parent) {
      empty.parent.children?.delete(empty.label);
      if (empty.parent.children?.size === 0) empty.parent.children = undefined;
    }
  }

  /**
   * The nodes that have this name: one, that of a wildcard, or several for a query with a wildcard label. Where several
   * names are looked up for one query, they share `visits`.
   */
  matching(labels: readonly string[], visits?: Visits): readonly RecordNode[] {
    let nodes: RecordNode[] = [this.root];
    for (const label of labels) {
      if (visits !== undefined && nodes.length > 1) visits.left -= nodes.length;
      if (visits !== undefined && visits.left <= 0) return [];
      const next = firstChildren(nodes, label);
      if (next.length === 0) return nodes.flatMap((node) => node.children?.get(WILDCARD) ?? []);
      nodes = next;
    }
    return nodes;
  }
}

/** All nodes below one, up to a limit. */
export function* below(node: RecordNode, nodesMax: number): Iterable<RecordNode> {
  let left = nodesMax;
  const open = [(node.children ?? NONE).values()];
  for (let children = open.at(-1); children !== undefined && left > 0; children = open.at(-1)) {
    const next = children.next();
    if (next.done === true) open.pop();
    else {
      left--;
      yield next.value;
      open.push((next.value.children ?? NONE).values());
    }
  }
}

/** The labels of its key, the first one of its name at the end. */
export function pathTo(node: RecordNode): readonly string[] {
  const labels: string[] = [];
  for (let at = node; at.parent !== undefined; at = at.parent) labels.unshift(at.label);
  return labels;
}

/** Up to a limit, without a look at the others: there may be very many of them. */
function firstChildren(nodes: readonly RecordNode[], label: string): RecordNode[] {
  const found: RecordNode[] = [];
  for (const { children = NONE } of nodes) {
    const exact = children.get(label);
    const matching = exact !== undefined ? [exact] : ANY.has(label) ? children.values() : [];
    for (const child of matching) {
      if (found.length === ETCD_LIMITS.visits) return found;
      found.push(child);
    }
  }
  return found;
}

function newNode(label: string, parent: RecordNode | undefined): RecordNode {
  return { label, parent, record: undefined, lease: undefined, children: undefined };
}

function isEmpty({ record, children }: RecordNode): boolean {
  return record === undefined && children === undefined;
}
