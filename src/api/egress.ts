/**
 * Egress: where containers connected to, as returned by `GET /v1/egress`.
 */
export interface EgressReport {
  /** Names of answers are shown; false where queries.names is not full: then nobody can say what was asked. */
  readonly hasNames: boolean;
  /** Answers by UDP to what came in are left out. Before Linux 5.16 they look like connections of the container's own. */
  readonly leavesOutAnswers: boolean;
  readonly containers: readonly EgressContainer[];
}

export interface EgressContainer {
  readonly container: string;
  readonly containerId: string;
  /** The Compose project and service of the container, if any. */
  readonly project: string | null;
  readonly service: string | null;
  /** false for a container that has ended; the last 64 are listed. */
  readonly isRunning: boolean;
  /** The container whose network it uses; its connections are listed there. */
  readonly sharedWith: string | null;
  /** Since when connections may be missing because there were too many; null if all are listed. */
  readonly missingSince: string | null;
  /** Why it, or one of its networks, is not recorded. */
  readonly notRecorded: readonly string[];
  /** The latest first. */
  readonly connections: readonly EgressConnection[];
}

export interface EgressConnection {
  readonly address: string;
  /** tcp, udp, icmp, icmpv6, sctp, dccp, or the number of another. */
  readonly protocol: string;
  /** null where the protocol has none, or the packet did not show it. */
  readonly port: number | null;
  /** What the container had asked and was answered with the address; the latest last. Empty: it never asked for it. */
  readonly names: readonly string[];
  /** Who has the address, if that is known. */
  readonly owner: EgressOwner | null;
  readonly first: string;
  readonly last: string;
  /** Connections by TCP; packets by other protocols, those left out that answer what came in. */
  readonly count: number;
}

export interface EgressOwner {
  readonly kind: "container" | "host";
  /** Of the container; of the host, the network on which it has the address. */
  readonly name: string;
}

/** Nobody had told the container the address, and it is none of a container or of the host. */
export function isUnasked({ names, owner }: EgressConnection): boolean {
  return names.length === 0 && owner === null;
}
