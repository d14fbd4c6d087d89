/**
 * View: what one network namespace can resolve. It has the name sources, in order of precedence, and the upstreams for
 * everything else. The registry replaces it when any of that changes; the names themselves are in the tables of their
 * sources and are shared by all views.
 */
import type { VisibleNames } from "./visible-names.ts";

/** A nameserver and the namespace it is queried from: the pair, not the address alone, identifies a server. */
export interface Server {
  /**
   * "docker": Docker's own resolver, for containers whose upstreams cannot be determined. "node": the namespace of `container`, which is a
   * node of a cluster.
   */
  readonly from: "host" | "container" | "docker" | "node";
  readonly address: string;
  readonly port: number;
  /**
   * Queried only when the servers before it cannot be reached at all: the server behind a stub resolver. One of the host behind Docker's
   * resolver is also queried when that one fails.
   */
  readonly isBackup?: boolean;
  /** It is queried over TLS alone, and this is the name in its certificate: a host name, or its address. */
  readonly tls?: string;
  /** The container that is there, if it was named as the server. */
  readonly container?: UpstreamContainer;
}

/** A container as a server. After another start it is another server, with no health and no sockets yet. */
interface UpstreamContainer {
  readonly name: string;
  readonly network: string;
  readonly startedAt: string;
}

/** A container that was named as a server and cannot be queried. */
export interface MissingServer {
  /** The server as it was written. */
  readonly server: string;
  /** A clause for users, with what to do. */
  readonly reason: string;
}

/** The servers for names below one suffix. */
export interface Route {
  /** Lower-case wire labels that a name ends with, and their number; none for every name. */
  readonly suffix: Uint8Array;
  readonly labelCount: number;
  /** In order, those that this container may use; empty: such names cannot be resolved. */
  readonly servers: readonly Server[];
  /** Such names exist in no upstream: they are denied locally. */
  readonly isLocal: boolean;
  /** Such names are not forwarded for clients with this view. */
  readonly isRefused?: boolean;
  /** Where it was configured, as text. */
  readonly by?: string;
  /** Servers that are left out, because they are queried from the host and this container has no external network. */
  readonly withheld?: readonly Server[];
  /** Containers that are not queried, or not instead of these servers. */
  readonly missing?: readonly MissingServer[];
}

/** The upstreams for names that are not local. */
export interface Upstreams {
  /** Longest suffix first; the last route has an empty one, so that there is a route for every name. */
  readonly routes: readonly Route[];
  /** ndots was configured: a client then completes a single-label name and never sends it as it is. */
  readonly isNdotsSet: boolean;
}

export interface View {
  readonly names: readonly VisibleNames[];
  readonly upstreams: Upstreams;
  /** A shorter time budget, for clients that time out sooner than others. */
  readonly budgetMs?: number;
}

export type TlsFailureKind = "blocked" | "absent" | "name" | "untrusted" | "time" | "authorities";

/**
 * Why a server cannot be queried over TLS, and what helps. It is not queried in any other way instead.
 *
 *   blocked      there is no connection to its port: a firewall drops the packets
 *   absent       nothing listens there, or what does speaks no TLS
 *   name         its certificate is for another name
 *   untrusted    its certificate is of no authority that this machine trusts
 *   time         its certificate is not valid yet, or not any more; or the clock is wrong
 *   authorities  the file of authorities cannot be used
 */
export interface TlsFailure {
  readonly kind: TlsFailureKind;
  /** A clause about the server, such as "nothing listens at its port 853". */
  readonly text: string;
}

/** The prefix of the text if it is the reason of a failed query. */
export const TLS_FAILED = "TLS: ";

/** What to do, as a clause. */
export function tlsAdvice(
  kind: TlsFailureKind,
  { address, port, tls = "" }: Pick<Server, "address" | "port" | "tls">,
): string {
  switch (kind) {
    case "blocked":
      return `allow TCP port ${port} to ${address} in the firewalls on the way`;
    case "absent":
      return `have ${address} serve DNS over TLS at port ${port}, or write the port at which it does: tls://ADDRESS:PORT`;
    case "name":
      return `write a name that is in the certificate behind the address, in place of ${tls}: tls://ADDRESS#NAME`;
    case "untrusted":
      return (
        "if the server is yours, add its authority to those of this machine (update-ca-certificates), or set " +
        "forward: {tls-ca: FILE}; if not, something on the way may answer in its place"
      );
    case "time":
      return `compare the clock of this machine with these dates (timedatectl); if it is right, ${address} needs a new certificate`;
    case "authorities":
      return "correct the setting forward.tls-ca";
  }
}
