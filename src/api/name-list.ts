/**
 * NameList: the names of this engine's containers, as returned by `GET /v1/names`: all of them by network, or as one container
 * resolves them.
 */
import type { ContainerRef } from "./names.ts";

/** A container that has a name. */
export interface NameOwner {
  readonly container: string;
  readonly containerId: string;
  readonly project: string | null;
  readonly service: string | null;
  /** A container that is not running has none. */
  readonly addresses: readonly string[];
}

export interface ListedName {
  /** It is in lower case. */
  readonly name: string;
  /** Where it is known; null for a container without a network with names, and for an alias of a link. */
  readonly network: string | null;
  /** Where it comes from, if it is no name that Docker gives a container on that network, such as a zone. */
  readonly source?: string;
  /** What is answered instead, in the state `shadowed`. */
  readonly shadowedBy?: string;
  /** What a declared name has beside addresses: at most 8 records. */
  readonly records?: readonly string[];
  /**
   * `resolves`: to these addresses. `other-network`: the container asked for is not on this network. `not-running`: all
   * containers with the name have stopped. `no-network`: the container is on no network with names. `shadowed`: another
   * source with the name, or another container, comes first.
   */
  readonly state: "resolves" | "shadowed" | "other-network" | "not-running" | "no-network";
  readonly addresses: readonly string[];
  readonly owners: readonly NameOwner[];
  /** It is the beginning of the container's ID, which Docker makes a name as well. */
  readonly isId: boolean;
}

export interface NameList {
  /** null for all names of the engine. */
  readonly container: ContainerRef | null;
  /** The container's networks, in search order; all networks with names without a container. */
  readonly networks: readonly string[];
  /** Sorted by name. */
  readonly names: readonly ListedName[];
  /** Names that are left out, because there are too many. */
  readonly omitted: number;
}
