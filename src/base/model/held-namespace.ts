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
  /** That of the process's own queries, which its rules let pass. A process of an older version does not say. */
  readonly mark?: number | undefined;
  /** Client ports of TCP connections to the previous resolver, which the rules exempt. */
  readonly spared: readonly number[];
  readonly pairs: readonly HeldPair[];
  /**
   * The close of its last descriptor waits for the lock of the namespace's rules, and for nothing else. So the keeper has the only
   * one: a process that dies may keep its own descriptors open, while one of its threads waits for a lock.
   */
  readonly gate: number | undefined;
  /** The tables end with the last descriptor of the socket. */
  readonly isOwned: boolean;
  /** A process of the namespace holds the lock of the tables, as far as is known: it is handed back last. */
  readonly isLocked: boolean;
  /** What becomes of it when no process serves it. */
  readonly alone: WhenAlone;
  /** Without these a program at lo ends, to which the rules lead queries: it must outlive the tables. */
  readonly programs: readonly number[];
}

/**
 * It is handed back to Docker's resolver; or, where a policy is enforced, the keeper keeps tables and sockets and refuses its
 * queries: when the serving process has ended, or from now on.
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

/** What the serving process gives the keeper copies of. It has no gate itself: one is opened for the keeper, where that is possible. */
export type ServedNamespace = Omit<HeldNamespace, "gate"> & { readonly openGate: () => number | undefined };

/** A namespace as the keeper holds it, until it is released. */
export interface Hold {
  /** Replaces what is held. */
  update(namespace: ServedNamespace): void;
  release(): void;
}

/** Gives the keeper copies of the descriptors. It removes the rules if this process dies before it releases them. */
export type Keep = (namespace: ServedNamespace) => Hold;

/** Has the keeper refuse namespaces while this process runs. */
export interface Refusing {
  /**
   * From now on, with copies of the descriptors. Returns whether it does. `onEnd` is called when it is over, and nothing leads there
   * any more.
   */
  begin(namespace: ServedNamespace, onEnd: () => void): Promise<boolean>;
  /** What the previous process left of a namespace is to be refused on. Returns whether there is, or may be, such a thing. */
  goOn(id: string): boolean;
  /** It may go back to Docker's resolver. */
  end(id: string): void;
}
