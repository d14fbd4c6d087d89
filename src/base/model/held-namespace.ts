/**
 * HeldNamespace: what dns11 has in one served namespace: the tables, the netlink socket that may change them, and the
 * sockets that they redirect to. A process with copies of these descriptors can remove the rules, or go on serving.
 */
export interface HeldNamespace {
  /** Device and inode. */
  readonly id: string;
  /** The netlink socket that made the tables, and may remove them. */
  readonly netlink: number;
  readonly tables: readonly HeldTable[];
  /** The connection tracking zone of redirected conversations. */
  readonly zone: number;
  /** The mark of the process's own queries, which its rules let pass. A process of an older version does not say. */
  readonly mark?: number | undefined;
  /** Client ports of TCP connections to the previous resolver, which the rules exempt. */
  readonly spared: readonly number[];
  readonly pairs: readonly HeldPair[];
  /**
   * A netfilter socket that was never used: closing its last descriptor waits for the lock of the namespace's rules, and for nothing else.
   * Only the keeper has one, because a process that dies may keep its own descriptors open while one of its threads waits for a lock.
   */
  readonly gate: number | undefined;
  /** The tables end with the last descriptor of the socket. */
  readonly isOwned: boolean;
  /** A process of the namespace holds the lock of the tables, as far as is known: it is handed back last. */
  readonly isLocked: boolean;
  /** What is done with the namespace when no process serves it. */
  readonly alone: WhenAlone;
  /** Descriptors that keep a program at lo attached, to which the rules send queries: it must outlive the tables. */
  readonly programs: readonly number[];
}

/**
 * The namespace is handed back to Docker's resolver; or, if a policy is enforced, the keeper keeps tables and sockets and refuses the
 * namespace's queries: when the serving process has ended, or from now on.
 */
export const WHEN_ALONE = ["hand-back", "refuse", "refuse-now"] as const;
export type WhenAlone = (typeof WHEN_ALONE)[number];

export interface HeldTable {
  readonly family: "ip" | "ip6" | "bridge";
  readonly name: string;
}

/** A UDP socket and a listening TCP socket at one address. */
export interface HeldPair {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: { readonly address: string; readonly udpPort: number; readonly tcpPort: number };
}

/**
 * The parts of which the serving process gives the keeper copies. It has no gate itself: one is opened for the keeper, where that is
 * possible.
 */
export type ServedNamespace = Omit<HeldNamespace, "gate"> & { readonly openGate: () => number | undefined };

/** A namespace as the keeper holds it, until it is released. */
export interface Hold {
  update(namespace: ServedNamespace): void;
  release(): void;
}

/** Gives the keeper copies of the descriptors. It removes the rules if this process dies before it releases them. */
export type Keep = (namespace: ServedNamespace) => Hold;

/** Has the keeper refuse namespaces while this process runs. */
export interface Refusing {
  /**
   * Begins to refuse queries, with copies of the descriptors. Returns whether the keeper does. `onEnd` is called when that is over, and no
   * rule sends queries there any more.
   */
  begin(namespace: ServedNamespace, onEnd: () => void): Promise<boolean>;
  /** Goes on refusing for a namespace that the previous process has left. Returns whether there is, or may be, anything to go on with. */
  goOn(id: string): boolean;
  /** Ends the refusing: the namespace may go back to Docker's resolver. */
  end(id: string): void;
}
