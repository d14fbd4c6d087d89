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

  /**
   * Packets of one source that the kernel lets through to an address of `listen`, in a second and at once; what is beyond is lost. A
   * source is an IPv4 address, or the first half of an IPv6 address. A query by TCP takes five. Whoever forges the address of a machine that
   * may ask has 100 KB sent to it in a second at most.
   */
  lanPacketsPerSecond: 200,
  lanPacketsBurst: 400,
  /** Sources that are counted at once, of each family; one more gets nothing until another has been quiet for that time. */
  lanSources: 16_384,
  lanSourceMs: 5_000,
  /** Bytes of an answer by UDP to such a source: what is longer comes by TCP, whose sender cannot be forged. */
  lanUdpBytes: 512,
  /** TCP connections of one such source; one more is closed at once. All sources of an entry have those of one container. */
  lanSourceStreams: 16,
} as const;
