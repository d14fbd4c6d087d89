/**
 * SliceTable: the EndpointSlices of a cluster by the Service that they belong to, and by the addresses of their endpoints.
 */
import type { ClusterSlice, ObjectName } from "./cluster-objects.ts";
import { addressKey } from "./address-key.ts";

export class SliceTable {
  readonly #slices = new Map<string, ClusterSlice>();
  readonly #byService = new Map<string, ClusterSlice[]>();
  readonly #byAddress = new Map<string, ClusterSlice[]>();
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

  of(service: ObjectName): Iterable<ClusterSlice> {
    return this.#byService.get(keyOf(service)) ?? [];
  }

  /** Those with an endpoint of this address, by the key of `addressKey`. */
  at(address: string): Iterable<ClusterSlice> {
    return this.#byAddress.get(address) ?? [];
  }

  put(slice: ClusterSlice): void {
    this.remove(slice);
    this.#slices.set(keyOf(slice), slice);
    this.#endpoints += slice.endpoints.length;
    addTo(this.#byService, serviceOf(slice), slice);
    for (const address of addressesOf(slice)) addTo(this.#byAddress, address, slice);
  }

  remove(named: ObjectName): void {
    const before = this.#slices.get(keyOf(named));
    if (before === undefined) return;
    this.#slices.delete(keyOf(before));
    this.#endpoints -= before.endpoints.length;
    removeFrom(this.#byService, serviceOf(before), before);
    for (const address of addressesOf(before)) removeFrom(this.#byAddress, address, before);
  }
}

function keyOf({ namespace, name }: ObjectName): string {
  return `${namespace}/${name}`;
}

function serviceOf({ namespace, service }: ClusterSlice): string {
  return keyOf({ namespace, name: service });
}

function addressesOf({ endpoints }: ClusterSlice): readonly string[] {
  return endpoints.flatMap(({ addresses }) => addresses.map((address) => addressKey(address)));
}

/** Most lists have one slice: sets would take four times as much memory. */
function addTo(table: Map<string, ClusterSlice[]>, key: string, slice: ClusterSlice): void {
  const slices = table.get(key);
  if (slices === undefined) table.set(key, [slice]);
  else if (!slices.includes(slice)) slices.push(slice);
}

function removeFrom(table: Map<string, ClusterSlice[]>, key: string, slice: ClusterSlice): void {
  const slices = table.get(key)?.filter((each) => each !== slice) ?? [];
  if (slices.length === 0) table.delete(key);
  else table.set(key, slices);
}
