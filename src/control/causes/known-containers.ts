/**
 * KnownContainers: all containers of this engine by their names, so that the place of a name is found without a search.
 * It is built for one report.
 */
import { inSlices } from "../../base/lib/slices.ts";
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
  readonly all: KnownContainer[] = [];
  readonly #byName = new Map<string, Set<KnownContainer>>();
  readonly #byId = new Map<string, KnownContainer>();
  readonly #byAddress = new Map<string, AddressPlace[]>();
  /** The key is the name of the Compose service in lower case. */
  readonly #byService = new Map<string, KnownContainer[]>();

  constructor(all: Iterable<KnownContainer>) {
    for (const container of all) this.#add(container);
  }

  /** The same in slices. */
  static async gather(all: Iterable<KnownContainer>): Promise<KnownContainers> {
    const known = new KnownContainers([]);
    await inSlices(known.#adding(all));
    return known;
  }

  byId(id: string): KnownContainer | undefined {
    return this.#byId.get(id);
  }

  /** The containers of Compose services with this name, of all projects; `service` is in lower case. */
  ofService(service: string): readonly KnownContainer[] {
    return this.#byService.get(service) ?? [];
  }

  /** The endpoints with an address; several if networks have the same subnet. */
  withAddress(address: string): readonly AddressPlace[] {
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

  *#adding(all: Iterable<KnownContainer>): Generator<void> {
    for (const container of all) yield this.#add(container);
  }

  #add(container: KnownContainer): void {
    this.all.push(container);
    this.#byId.set(container.id, container);
    const service = container.compose?.service.toLowerCase();
    if (service !== undefined) {
      const others = this.#byService.get(service);
      if (others === undefined) this.#byService.set(service, [container]);
      else others.push(container);
    }
    this.#addName(container.name.toLowerCase(), container);
    for (const endpoint of container.endpoints) {
      for (const name of endpoint.names) this.#addName(name, container);
      for (const address of [endpoint.ipv4, endpoint.ipv6]) {
        if (address !== undefined) this.#addAddress(addressKey(address), { container, endpoint });
      }
    }
  }

  #addName(name: string, container: KnownContainer): void {
    const others = this.#byName.get(name);
    if (others === undefined) this.#byName.set(name, new Set([container]));
    else others.add(container);
  }

  #addAddress(key: string, place: AddressPlace): void {
    const others = this.#byAddress.get(key);
    if (others === undefined) this.#byAddress.set(key, [place]);
    else others.push(place);
  }
}

/** The same for all texts of an address. */
function addressKey(address: string): string {
  return addressBytes(address)?.join(".") ?? address;
}
