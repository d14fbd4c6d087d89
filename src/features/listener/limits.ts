/** Limits of the listener on the host, whose sockets all askers share. */
export const LISTENER_LIMITS = {
  /**
   * Packets of one asker that the kernel lets through in a second, by each of its addresses; what is beyond is lost. One that floods
   * would fill the buffer that all share. A busy container sends some hundred.
   */
  packetsPerSecond: 5_000,
  /** And at once. */
  packetsBurst: 1_000,
  /** Receive buffer of the UDP socket: some 21,000 queries, so twenty bursts at once. */
  receiveBytes: 8 * 1024 * 1024,
  /** Packets by links of nobody that is known yet: let through in a second and at once. */
  newPerSecond: 200,
  newBurst: 50,
  /** Links on the default bridge that are looked at because a step of a build may have them; BuildKit runs some steps at once. */
  buildLinks: 256,
} as const;
