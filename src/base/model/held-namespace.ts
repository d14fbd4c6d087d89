/**
 * HeldNamespace: what stands in one namespace that is served, and whose it is: the tables with the netlink socket that may
 * change them, and the sockets to which they lead. Whoever holds copies of these descriptors can take the rules away, or
 * go on serving.
 */
export interface HeldNamespace {
  /** Device and inode. */
  readonly id: string;
  /** The netlink socket that made the tables, and may remove them. */
  readonly netlink: number;
  readonly tables: readonly HeldTable[];
  /** The connection tracking zone of the conversations. */
  readonly zone: number;
  /** Client ports of TCP conversations with the resolver before us, which the rules let pass. */
  readonly spared: readonly number[];
  readonly pairs: readonly HeldPair[];
}

export interface HeldTable {
  readonly family: "ip" | "ip6";
  readonly name: string;
}

/** A UDP socket and a listening TCP socket at one address. */
export interface HeldPair {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: { readonly address: string; readonly udpPort: number; readonly tcpPort: number };
}

/** What is held for one namespace, until it is let go of. */
export interface Hold {
  /** Something else stands there now. */
  update(namespace: HeldNamespace): void;
  release(): void;
}

/** Has somebody hold copies, who takes the rules away should this process end before it lets go. */
export type Keep = (namespace: HeldNamespace) => Hold;
