/**
 * RecordTree: the records of etcd by the labels of their keys, which are those of their names from the last one on. A
 * key is also the parent of longer ones.
 */
import { LIMITS } from "../../../base/limits.ts";
import type { StoredRecord } from "./stored-record.ts";

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
  return { left: LIMITS.etcdVisits };
}

/** In SkyDNS they match every label. */
const ANY: ReadonlySet<string> = new Set(["*", "any"]);
/** In a key it stands for every name that no other key has (RFC 4592). */
const WILDCARD = "*";
const NONE: ReadonlyMap<string, RecordNode> = new Map();

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
      if (found.length === LIMITS.etcdVisits) return found;
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
