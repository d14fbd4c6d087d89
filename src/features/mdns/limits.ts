/** Limits of names of the local network, each with its reason. */
export const MDNS_LIMITS = {
  /**
   * How long a name may take: machines answer within a fraction of a second, and a server that is silent for a second would count as
   * down.
   */
  lookupMs: 800,
  /** What the addresses of the other family may take longer, once one family has answered: machines send both together. */
  graceMs: 200,
  /**
   * Names that are looked up at once, each by two connections: avahi-daemon opens 768 files, and every name that nobody has goes to
   * all machines of the network. The forwarder bounds those of one container; more fail at once.
   */
  lookups: 64,
  /** Queries that wait for one name. */
  waiters: 256,
  /** A reply of the program: avahi-daemon writes a line, systemd-resolved up to a few kilobytes. */
  replyBytes: 16 * 1024,
  /** Addresses of one name and family: all fit into the smallest reply over UDP. */
  addresses: 8,
  /** What is announced may change, and may be gone; a machine that starts is found soon. */
  ttlSeconds: 10,
  absentSeconds: 3,
  /** Connections over TCP, which only dns11 opens. */
  streams: 64,
  streamIdleMs: 10_000,
  /** Which links are Docker's is read again after so long. */
  linksMs: 1_000,
  /** Where the port cannot be opened, it is tried again after so long. */
  openAgainMs: 10_000,
} as const;
