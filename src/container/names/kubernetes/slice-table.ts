/**
 * SliceTable: the EndpointSlices of a cluster by the Service that they belong to, and their endpoints by label and address.
 * Any number may have one label or one address, so a reader has to stop by itself.
 */
import { MultiMap } from "../../../base/lib/multi-map.ts";
import type { ClusterEndpoint, ClusterSlice, ObjectName } from "./cluster-objects.ts";
import { addressKey } from "./address-key.ts";

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
