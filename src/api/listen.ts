/**
 * ListenReport: the state of an entry of `listen`, for status, doctor and metrics.
 */
export interface ListenReport {
  /** Its key in the setting; among the containers it is `listen:NAME`. */
  readonly name: string;
  readonly addresses: readonly ListenAddressReport[];
  readonly allow: readonly string[];
  readonly view: string;
  readonly forward: boolean;
  /** Why its view has no names; missing if it has. */
  readonly problem?: string;
  readonly queries: number;
  /** What got no answer, by reason. */
  readonly refused: Readonly<Record<ListenRefusal, number>>;
  /** Queries that found the socket's buffer full. */
  readonly lost: number;
}

/** TCP connections beyond a source's share, and sources that are not allowed and were not held back by the kernel. */
export type ListenRefusal = "source" | "connections";

export interface ListenAddressReport {
  readonly address: string;
  /** `waiting`: this host does not have it. */
  readonly state: "opening" | "serving" | "waiting" | "failed";
  readonly code?: string;
  /** Why it does not answer, and what to do. */
  readonly reason?: string;
}

/** All entries, and what rules have dropped before it reached any of them. */
export interface ListenReports {
  readonly entries: readonly ListenReport[];
  /** Packets: by another link than the address is on, of a source that is not allowed, too many of one source, past the rules. */
  readonly dropped: Readonly<Record<"link" | "source" | "rate" | "port", number>>;
}
