/**
 * What answers the queries that arrive at an address of the host. The query side implements it.
 */
import type { ListenRefusal } from "../../api/listener.ts";
import type { AddressBlock } from "../../base/model/address.ts";
import type { Server, View } from "../../base/model/view.ts";
import type { NamespaceSockets, WaitingSocket } from "../namespace/sockets.ts";

interface HostEndpoint {
  /** UDP queries, and TCP connections. */
  readonly queries: number;
  /** UDP queries that found a socket's buffer full. */
  readonly lost: number;
  /** Forwarded queries that wait for an answer. */
  readonly inFlight: number;
  /** Reads no more queries. The descriptors are those that another process may go on with. */
  pause(): readonly Pick<NamespaceSockets, "udp" | "tcp">[];
  resume(): void;
  close(): void;
}

/** For an address that many containers ask: each query is its container's own. */
export interface SharedEndpoint extends HostEndpoint {
  /** The containers by their addresses. */
  setContainers(askers: ReadonlyMap<string, string>): void;
  /** What a container sees has changed, or whether it gets answers. */
  update(containerId: string): void;
  /** Queries from an address that is nobody's any more. */
  readonly refused: number;
}

/** What is known of containers that have no client yet. */
export interface AskingContainers {
  /** Undefined for a container that gets no answers. */
  readonly viewOf: (containerId: string) => View | undefined;
  /** Whether it is known also while it asks from no address: it stands for several, which come and go. */
  readonly isLasting: (containerId: string) => boolean;
  /** Opens a socket to a server, in the container or on the engine's host. */
  readonly dial: (containerId: string, server: Server, type: "udp" | "tcp") => number;
}

/** Takes ownership of the sockets, also if it cannot listen on them; `waiting` receive the queries of containers that are not known yet. */
export type OpenSharedEndpoint = (
  sockets: readonly NamespaceSockets[],
  waiting: readonly WaitingSocket[],
  containers: AskingContainers,
) => SharedEndpoint;

/** For addresses that blocks of addresses may ask, all of whom are one client. */
export interface SubnetEndpoint extends HostEndpoint {
  readonly refused: Readonly<Record<ListenRefusal, number>>;
  setView(view: View): void;
}

export interface SubnetEndpointParts {
  /** Under which its queries are reported. */
  readonly id: string;
  readonly allow: readonly AddressBlock[];
  readonly view: View;
  /** Opens a socket to a server on the engine's host. */
  readonly dial: (server: Server, type: "udp" | "tcp") => number;
}

/** Takes ownership of the sockets, also if it cannot listen on them. */
export type OpenSubnetEndpoint = (sockets: readonly NamespaceSockets[], parts: SubnetEndpointParts) => SubnetEndpoint;
