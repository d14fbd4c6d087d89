/**
 * Endpoint: what answers queries on the sockets of one namespace. The query side implements it.
 */
import type { Server, View } from "../../base/model/view.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import type { ProbeTarget } from "../rules/probe.ts";

export interface Endpoint {
  readonly probeTarget: ProbeTarget;
  /** That of the query side's client. */
  readonly clientNumber: number;
  setView(view: View): void;
  /** Listens on these sockets, too, and owns them, also those on which it cannot listen. */
  add(sockets: readonly NamespaceSockets[]): void;
  /** Queries of this namespace that are in flight upstream. */
  readonly inFlight: number;
  /** Client ports of TCP connections on which an answer is still due. */
  readonly tcpClientPorts: readonly number[];
  readonly counters: Readonly<Record<string, number>>;
  /** Stops reading from the sockets and still answers what was read. Returns the new descriptors, in the same order; or throws and reads on. */
  pause(): readonly Pick<NamespaceSockets, "udp" | "tcp">[];
  resume(): void;
  close(): void;
}

/** Opens a socket to a server, in the namespace or on the engine's host. */
type DialUpstream = (server: Server, type: "udp" | "tcp") => number;

/** Opens an endpoint that has no sockets yet. */
export type OpenEndpoint = (view: View, dial: DialUpstream) => Endpoint;

/** The same for one container, under whose id queries are recorded. */
export type OpenEndpointFor = (containerId: string) => OpenEndpoint;
