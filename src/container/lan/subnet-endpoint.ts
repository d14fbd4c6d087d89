/**
 * SubnetEndpoint: what answers the queries that arrive at an entry's addresses. The query side implements it.
 */
import type { AddressBlock } from "../../base/model/address-block.ts";
import type { ListenRefusal } from "../../base/model/listen-report.ts";
import type { Server, View } from "../../base/model/view.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";

export interface SubnetEndpoint {
  readonly queries: number;
  readonly refused: Readonly<Record<ListenRefusal, number>>;
  /** Queries that found a socket's buffer full. */
  readonly lost: number;
  /** Forwarded queries that wait for an answer. */
  readonly inFlight: number;
  setView(view: View): void;
  pause(): readonly Pick<NamespaceSockets, "udp" | "tcp">[];
  resume(): void;
  close(): void;
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
