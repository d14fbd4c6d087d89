import { MultiMap } from "../../base/lib/multi-map.ts";
import { KeyProblems } from "../../container/names/source/store.ts";
import { type ClusterEndpoint, type ClusterService, type ClusterSlice, type ObjectName, nameOf } from "./objects.ts";

interface ObjectTable<T> {
  put(object: T): void;
  remove(named: ObjectName): void;
  has(named: ObjectName): boolean;
}

interface ResourceForm<T, U extends ObjectTable<T>> {
  /** As in a message. */
  readonly kind: string;
  readonly newTable: () => U;
  /** Undefined for an object that has no names. Throws an Error with the reason for one that is not valid. */
  readonly read: (object: unknown) => T | undefined;
  readonly isFull: (table: U) => boolean;
}

/**
 * The objects of one resource as the API sends them, a list and then changes, in a table. An object that is
 * not valid is left out and named.
 */
export class ClusterResource<T extends ObjectName, U extends ObjectTable<T>> {
  readonly problems = new KeyProblems();
  readonly #form: ResourceForm<T, U>;
  readonly #onChange: () => void;
  #table: U;
  /** What a list has brought so far. */
  #listed: U | undefined;
  #hasList = false;
  #refused = 0;

  constructor(form: ResourceForm<T, U>, onChange: () => void) {
    this.#form = form;
    this.#onChange = onChange;
    this.#table = form.newTable();
  }

  get table(): U {
    return this.#table;
  }

  get hasList(): boolean {
    return this.#hasList;
  }

  /** Objects that are left out because there are too many: those of the last list, or at least one that came later. */
  get refused(): number {
    return this.#refused;
  }

  get isFull(): boolean {
    return this.#form.isFull(this.#listed ?? this.#table);
  }

  begin(): void {
    this.#listed = this.#form.newTable();
    this.#refused = 0;
    this.problems.clear();
  }

  commit(unlisted: number): void {
    this.#refused += unlisted;
    this.#table = this.#listed ?? this.#table;
    this.#listed = undefined;
    this.#hasList = true;
    this.#onChange();
  }

  put(object: unknown): void {
    const table = this.#listed ?? this.#table;
    const named = nameOf(object);
    this.problems.forget(this.#keyOf(named));
    try {
      const read = this.#form.read(object);
      if (read === undefined) {
        if (named !== undefined) table.remove(named);
      } else if (!this.#form.isFull(table) || table.has(read)) table.put(read);
      // Later the same one may come again and again.
      else this.#refused = table === this.#listed ? this.#refused + 1 : Math.max(1, this.#refused);
    } catch (error) {
      if (named !== undefined) table.remove(named);
      this.problems.note(this.#keyOf(named), error);
    }
    if (table === this.#table) this.#onChange();
  }

  remove(object: unknown): void {
    const table = this.#listed ?? this.#table;
    const named = nameOf(object);
    if (named === undefined) return;
    this.problems.forget(this.#keyOf(named));
    table.remove(named);
    if (table === this.#table) this.#onChange();
  }

  #keyOf(named: ObjectName | undefined): string {
    return named === undefined ? `a ${this.#form.kind}` : `${this.#form.kind} ${named.namespace}/${named.name}`;
  }
}

/**
 * The Services of a cluster by namespace and name, and by cluster address.
 */
export class ServiceTable {
  readonly #namespaces = new Map<string, Map<string, ClusterService>>();
  readonly #byAddress = new Map<string, ClusterService>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  hasNamespace(namespace: string): boolean {
    return this.#namespaces.has(namespace);
  }

  get({ namespace, name }: ObjectName): ClusterService | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  has(named: ObjectName): boolean {
    return this.get(named) !== undefined;
  }

  /** By the key of `addressKey`. */
  at(address: string): ClusterService | undefined {
    return this.#byAddress.get(address);
  }

  *all(): Iterable<ClusterService> {
    for (const services of this.#namespaces.values()) yield* services.values();
  }

  put(service: ClusterService): void {
    this.remove(service);
    const services = this.#namespaces.get(service.namespace) ?? new Map<string, ClusterService>();
    services.set(service.name, service);
    this.#namespaces.set(service.namespace, services);
    this.#size++;
    for (const address of service.addresses) this.#byAddress.set(addressKey(address), service);
  }

  remove(named: ObjectName): void {
    const before = this.get(named);
    if (before === undefined) return;
    const services = this.#namespaces.get(before.namespace);
    services?.delete(before.name);
    if (services?.size === 0) this.#namespaces.delete(before.namespace);
    this.#size--;
    for (const address of before.addresses) {
      const key = addressKey(address);
      if (this.#byAddress.get(key) === before) this.#byAddress.delete(key);
    }
  }
}

/**
 * The EndpointSlices of a cluster by the Service that they belong to, and their endpoints by label and address.
 * Any number may have one label or one address, so a reader has to stop by itself.
 */
export class SliceTable {
  readonly #slices = new Map<string, ClusterSlice>();
  /** Those with an endpoint, and those with one that is ready: none is visited in vain. */
  readonly #filled = new MultiMap<ClusterSlice>();
  readonly #ready = new MultiMap<ClusterSlice>();
  readonly #byLabel = new MultiMap<ClusterEndpoint>();
  readonly #byAddress = new MultiMap<ClusterEndpoint>();
  #endpoints = 0;

  get size(): number {
    return this.#slices.size;
  }

  /** In all slices. */
  get endpoints(): number {
    return this.#endpoints;
  }

  has(named: ObjectName): boolean {
    return this.#slices.has(keyOf(named));
  }

  /** Those of a service with an endpoint. */
  of(service: ObjectName): Iterable<ClusterSlice> {
    return this.#filled.of(keyOf(service));
  }

  /** Those of a service with an endpoint that is ready. */
  readyOf(service: ObjectName): Iterable<ClusterSlice> {
    return this.#ready.of(keyOf(service));
  }

  /** The endpoints of a service that have this label. */
  labelled(service: ObjectName, label: string): Iterable<ClusterEndpoint> {
    return this.#byLabel.of(labelKey(service, label));
  }

  /** The endpoints with this address, by the key of `addressKey`. */
  at(address: string): Iterable<ClusterEndpoint> {
    return this.#byAddress.of(address);
  }

  put(slice: ClusterSlice): void {
    this.remove(slice);
    this.#slices.set(keyOf(slice), slice);
    this.#endpoints += slice.endpoints.length;
    const service = keyOf(slice.service);
    if (slice.endpoints.length > 0) this.#filled.add(service, slice);
    if (slice.ready.length > 0) this.#ready.add(service, slice);
    for (const endpoint of slice.endpoints) {
      this.#byLabel.add(labelKey(slice.service, endpoint.label), endpoint);
      for (const address of endpoint.addresses) this.#byAddress.add(addressKey(address), endpoint);
    }
  }

  remove(named: ObjectName): void {
    const before = this.#slices.get(keyOf(named));
    if (before === undefined) return;
    this.#slices.delete(keyOf(before));
    this.#endpoints -= before.endpoints.length;
    const service = keyOf(before.service);
    this.#filled.delete(service, before);
    this.#ready.delete(service, before);
    for (const endpoint of before.endpoints) {
      this.#byLabel.delete(labelKey(before.service, endpoint.label), endpoint);
      for (const address of endpoint.addresses) this.#byAddress.delete(addressKey(address), endpoint);
    }
  }
}

function keyOf({ namespace, name }: ObjectName): string {
  return `${namespace}/${name}`;
}

function labelKey(service: ObjectName, label: string): string {
  return `${keyOf(service)}/${label}`;
}

const IPV4_LABELS = 4;
const IPV6_LABELS = 32;
const DECIMAL = /^(?:0|[1-9]\d{0,2})$/;
const NIBBLE = /^[0-9a-f]$/;
const BYTE_MAX = 255;

/** Its bytes, one a character. */
export function addressKey(address: Uint8Array): string {
  return String.fromCharCode(...address);
}

/** Of the labels of a name below in-addr.arpa or ip6.arpa; undefined where they are no whole address. */
export function reverseKey(labels: Uint8Array, length: number): string | undefined {
  const texts: string[] = [];
  for (let at = 0; at < length && texts.length <= IPV6_LABELS; at += 1 + (labels[at] as number)) {
    texts.push(Buffer.from(labels.subarray(at + 1, at + 1 + (labels[at] as number))).toString("latin1"));
  }
  texts.reverse();
  if (texts.length === IPV4_LABELS && texts.every((text) => DECIMAL.test(text) && Number(text) <= BYTE_MAX)) {
    return String.fromCharCode(...texts.map(Number));
  }
  if (texts.length !== IPV6_LABELS || !texts.every((text) => NIBBLE.test(text))) return undefined;
  return Buffer.from(texts.join(""), "hex").toString("latin1");
}
