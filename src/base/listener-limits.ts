/**
 * Limits of the listener on the host, whose sockets all askers share. They are part of `LIMITS`.
 */
export const LISTENER_LIMITS = {
  /**
   * Packets of one asker that the kernel lets through in a second, by each of its addresses; what is beyond is lost. One that floods
   * would fill the buffer that all share. A busy container sends some hundred.
   */
  listenerPacketsPerSecond: 5_000,
  /** And at once. */
  listenerPacketsBurst: 1_000,
  /** Receive buffer of the UDP socket: some 21,000 queries, so twenty bursts at once. */
  listenerReceiveBytes: 8 * 1024 * 1024,
  /**
   * Queries by links of nobody that is known yet: let through in a second and at once, waiting, and for how long. A container is known some
   * 20 ms after its start, on a busy machine later; its C library asks again after 2.5 s at the earliest.
   */
  listenerNewPerSecond: 200,
  listenerNewBurst: 50,
  listenerWaiting: 64,
  listenerWaitingMs: 2_000,
  /** Links on the default bridge that are looked at because a step of a build may have them; BuildKit runs some steps at once. */
  buildLinks: 256,
  /** Until the listener is tried again after a failure: the port may be free by then. */
  listenerRetryMs: 10_000,
} as const;
