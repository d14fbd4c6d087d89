/**
 * ListenerReport: the state of the listener on the host, for status and doctor.
 */
export interface ListenerReport {
  readonly state: "off" | "opening" | "serving" | "failed";
  /** Where it answers. */
  readonly addresses: readonly string[];
  /** The containers that may ask it: those whose links on the host are known. */
  readonly askers: number;
  /** Addresses that several containers have, which get no answers. */
  readonly ambiguous: readonly string[];
  /** The steps of builds that are answered, if the settings say so. */
  readonly builds?: BuildsReport;
  /** UDP queries, and TCP connections, of containers. */
  readonly queries: number;
  /** Packets that got no reply, by reason. */
  readonly refused: Readonly<Record<ListenerRefusal, number>>;
  /** UDP queries that found a socket's buffer full. */
  readonly lost: number;
  /** Why it has failed, and what to do. */
  readonly code?: string;
  readonly reason?: string;
}

export interface BuildsReport {
  /** Its names are what steps resolve. */
  readonly network: string;
  /** Whether there is such a network now. */
  readonly isKnown: boolean;
  /** Those that run now. */
  readonly steps: number;
}

/**
 * `asker`: by a container's link, beyond its limit or from an address that it does not have. `unknown`: by a link of nobody that is known,
 * too many. `host`: not by the link of a container at all. `address`: from an address that was a container's a moment ago.
 */
export type ListenerRefusal = "asker" | "unknown" | "host" | "address";

/**
 * The state of an entry of `listen`, for status, doctor and metrics.
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
