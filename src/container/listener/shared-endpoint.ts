/**
 * SharedEndpoint: what answers the queries that the listener receives. The query side implements it.
 */
import type { Server, View } from "../../base/model/view.ts";
import type { NamespaceSockets, WaitingSocket } from "../namespace/sockets.ts";

export interface SharedEndpoint {
  /** The containers by their addresses. */
  setAskers(askers: ReadonlyMap<string, string>): void;
  /** What a container sees has changed, or whether it gets answers. */
  update(containerId: string): void;
  /** UDP queries, and TCP connections, of containers. */
  readonly queries: number;
  /** Those from an address that is nobody's any more. */
  readonly refused: number;
  /** UDP queries that found a socket's buffer full. */
  readonly lost: number;
  /** Forwarded queries that wait for an answer. */
  readonly inFlight: number;
  pause(): readonly Pick<NamespaceSockets, "udp" | "tcp">[];
  resume(): void;
  close(): void;
}

/** What the listener knows of containers that have no client yet. */
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
