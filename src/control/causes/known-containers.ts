/**
 * KnownContainers: all containers of this engine by their names, so that the place of a name is found without a search.
 * It is built for one report.
 */
import { addressBytes } from "../../base/model/address.ts";
import type { KnownContainer, KnownEndpoint } from "./known-container.ts";

/** Where a name is known: the endpoints that have it; none for a container that has it on no network with names. */
export interface NamePlace {
  readonly container: KnownContainer;
  readonly endpoints: readonly KnownEndpoint[];
}

/** An endpoint that has an address. */
export interface AddressPlace {
  readonly container: KnownContainer;
  readonly endpoint: KnownEndpoint;
}

export class KnownContainers {
  readonly all: readonly KnownContainer[];
  readonly #byName = new Map<string, Set<KnownContainer>>();
  readonly #byId = new Map<string, KnownContainer>();
  #byAddress: Map<string, AddressPlace[]> | undefined;

  constructor(all: readonly KnownContainer[]) {
    this.all = all;
    for (const container of all) {
      this.#byId.set(container.id, container);
      this.#add(container.name.toLowerCase(), container);
      for (const { names } of container.endpoints) for (const name of names) this.#add(name, container);
    }
  }

  byId(id: string): KnownContainer | undefined {
    return this.#byId.get(id);
  }

  /** The endpoints with an address; several if networks have the same subnet. */
  withAddress(address: string): readonly AddressPlace[] {
    this.#byAddress ??= addressIndex(this.all);
    return this.#byAddress.get(addressKey(address)) ?? [];
  }

  /** The containers with a name, alone or as NAME.NETWORK; `name` is in lower case. */
  places(name: string): NamePlace[] {
    const found = new Map<KnownContainer, Set<KnownEndpoint>>();
    const add = (container: KnownContainer, endpoint?: KnownEndpoint): void => {
      const endpoints = found.get(container) ?? new Set();
      found.set(container, endpoints);
      if (endpoint !== undefined) endpoints.add(endpoint);
    };
    for (const container of this.#byName.get(name) ?? []) {
      const endpoints = container.endpoints.filter(({ names }) => names.includes(name));
      if (endpoints.length === 0 && container.endpoints.length === 0) add(container);
      for (const endpoint of endpoints) add(container, endpoint);
    }
    for (let dot = name.indexOf("."); dot > 0; dot = name.indexOf(".", dot + 1)) {
      const [bare, network] = [name.slice(0, dot), name.slice(dot + 1)];
      for (const container of this.#byName.get(bare) ?? []) {
        for (const endpoint of container.endpoints) {
          if (endpoint.networkName.toLowerCase() === network && endpoint.names.includes(bare)) add(container, endpoint);
        }
      }
    }
    return [...found].map(([container, endpoints]) => ({ container, endpoints: [...endpoints] }));
  }

  #add(name: string, container: KnownContainer): void {
    const others = this.#byName.get(name);
    if (others === undefined) this.#byName.set(name, new Set([container]));
    else others.add(container);
  }
}

function addressIndex(all: readonly KnownContainer[]): Map<string, AddressPlace[]> {
  const index = new Map<string, AddressPlace[]>();
  for (const container of all) {
    for (const endpoint of container.endpoints) {
      for (const address of [endpoint.ipv4, endpoint.ipv6]) {
        if (address === undefined) continue;
        const key = addressKey(address);
        index.set(key, [...(index.get(key) ?? []), { container, endpoint }]);
      }
    }
  }
  return index;
}

/** The same for all texts of an address. */
function addressKey(address: string): string {
  return addressBytes(address)?.join(".") ?? address;
}
