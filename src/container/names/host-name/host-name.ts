/**
 * EngineHostName: host.docker.internal, Docker Desktop's name for the engine's host, for containers that have no entry
 * of that name. Settings decide whether it exists: `host-docker-internal` for containers, and one of their own for those through which
 * others ask: KIND nodes look it up at each start.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import { folded, sameBytes, wireLabels } from "../../../base/dns/name.ts";
import { addressBytes } from "../../../base/model/address.ts";
import {
  type QuestionName,
  MISS,
  type NameAddresses,
  type NameSearch,
  type OwnName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import type { ContainerFact, NetworkFact } from "../../facts/fact.ts";
import { type Gateways, gatewaysOf } from "../source/gateways.ts";
import type { NameSource, NodeContext } from "../source/name-source.ts";
import type { NameSettings } from "../source/name-settings.ts";

export const HOST_DOCKER_INTERNAL = "host.docker.internal";
const LABELS = folded(wireLabels(HOST_DOCKER_INTERNAL) as Uint8Array);
const NONE = new Uint8Array(0);

/** The addresses of the engine's host for containers: its own on the default bridge. */
export type HostGateway = Gateways;

const NO_GATEWAY: HostGateway = { ipv4: undefined, ipv6: undefined };

class HostNames implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.engineHost;
  readonly #named: NameAddresses;
  readonly #by: string;

  constructor(named: NameAddresses, by: string) {
    this.#named = named;
    this.#by = by;
  }

  find({ folded: labels, foldedLength }: QuestionName, search: NameSearch): number {
    if (foldedLength !== LABELS.length || !sameBytes(labels, 0, LABELS, 0, LABELS.length)) return MISS;
    search.trace?.record("names", `"${HOST_DOCKER_INTERNAL}" is the engine's host, as set by ${this.#by}`);
    return search.found(this.#named, false);
  }

  list(): Iterable<OwnName> {
    return [{ name: HOST_DOCKER_INTERNAL, source: `setting ${this.#by}`, holders: [], ...this.#named }];
  }

  /** Reverse queries for the host's address go to the host's servers. */
  pointer(): undefined {
    return undefined;
  }
}

export class EngineHostName implements NameSource {
  readonly #networkOf: (id: string) => NetworkFact | undefined;
  /** Whether containers that are not nodes have the name. */
  readonly #isForContainers: boolean;
  #gateway: HostGateway = NO_GATEWAY;

  constructor({ hostName }: Pick<NameSettings, "hostName">, networkOf: (id: string) => NetworkFact | undefined) {
    this.#networkOf = networkOf;
    this.#isForContainers = hostName === "gateway";
  }

  succeed(current: EngineHostName): void {
    this.#gateway = current.#gateway;
  }

  /** Sets the addresses. Returns whether views change, once they are made again. */
  setGateway(gateway: HostGateway): boolean {
    const isNew = gateway.ipv4 !== this.#gateway.ipv4 || gateway.ipv6 !== this.#gateway.ipv6;
    this.#gateway = gateway;
    return isNew && this.#isForContainers;
  }

  namesFor(container: ContainerFact, node: NodeContext | undefined): VisibleNames | undefined {
    if (node !== undefined) {
      // "deny" and "forward" are not addresses.
      return hostNames([node.hostDockerInternal], node.hostDockerInternalBy);
    }
    return this.#isForContainers ? hostNames(this.#reachableBy(container), "host-docker-internal") : undefined;
  }

  /** A container without a gateway does not reach the host. */
  #reachableBy(container: ContainerFact): (string | undefined)[] {
    const { ipv4, ipv6 } = this.#gateway;
    const own = gatewaysOf(container, this.#networkOf);
    return [own.ipv4 && (ipv4 ?? own.ipv4), own.ipv6 && (ipv6 ?? own.ipv6)];
  }
}

function hostNames(addresses: readonly (string | undefined)[], by: string): VisibleNames | undefined {
  const all = addresses.flatMap((text) => (text === undefined ? [] : (addressBytes(text) ?? [])));
  if (all.length === 0) return undefined;
  const of = (length: number): Uint8Array => all.find((bytes) => bytes.length === length) ?? NONE;
  return new HostNames({ v4: of(4), v6: of(16) }, by);
}
