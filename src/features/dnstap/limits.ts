/** What a reader of dnstap may cost. */
export const DNSTAP_LIMITS = {
  /**
   * Bytes of messages that wait for the reader, twice: those that are being written, and those that come meanwhile. Further ones are dropped
   * and counted. One container may have half of it, so that it cannot have those of all others dropped.
   */
  waitingBytes: 1024 * 1024,
  containerBytes: 512 * 1024,
  /** How long messages wait to be written together. */
  gatherMs: 20,
  /** Time for a reader to accept the connection; and to confirm its end, which the end of dns11 waits for. */
  handshakeMs: 5_000,
  finishMs: 1_000,
  /** Bytes of a control frame, as in the protocol, which is all that a reader may ever send. */
  controlBytes: 512,
  /** Backoff of connections to a reader, which begins anew after a connection of that length. */
  retryFirstMs: 250,
  retryLastMs: 30_000,
  steadyMs: 30_000,
} as const;
