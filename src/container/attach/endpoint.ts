/**
 * What attaching needs from elsewhere: somebody who listens on the sockets it makes.
 */
import type { Server, View } from "../../base/model/view.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import type { ProbeTarget } from "../rules/probe.ts";

/** What serves one namespace, from its sockets. */
export interface Endpoint {
  readonly probeTarget: ProbeTarget;
  setView(view: View): void;
  /** Takes over further sockets. */
  add(sockets: readonly NamespaceSockets[]): void;
  /** Queries that are being asked upstream for this namespace. */
  readonly inFlight: number;
  /** Client ports of TCP connections on which something is still to be said. */
  readonly tcpClientPorts: readonly number[];
  readonly counters: Readonly<Record<string, number>>;
  /** Leaves what comes in the sockets; what has come is still answered. Their numbers are others then, in the same order. */
  pause(): readonly Pick<NamespaceSockets, "udp" | "tcp">[];
  resume(): void;
  close(): void;
}

/** Opens a socket to a server, from inside the namespace or from the engine's host. */
type DialUpstream = (server: Server, type: "udp" | "tcp") => number;

/** Takes over the sockets, and closes them in the end. */
export type OpenEndpoint = (sockets: readonly NamespaceSockets[], view: View, dial: DialUpstream) => Endpoint;

/** The same for one container, whose queries are kept under its id. */
export type OpenEndpointFor = (containerId: string) => OpenEndpoint;
