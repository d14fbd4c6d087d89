/**
 * ServiceTable: the Services of a cluster by namespace and name, and by cluster address.
 */
import { addressKey } from "./address-key.ts";
import type { ClusterService, ObjectName } from "./cluster-objects.ts";

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
