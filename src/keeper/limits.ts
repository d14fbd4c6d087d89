/**
 * The keeper's bounds, each with its reason.
 */
export const KEEPER_LIMITS = {
  /** How often the main process tells its keeper that it is alive, and how often the keeper looks when nothing comes. */
  beatMs: 200,
  lookMs: 100,
  /** How soon it is told what is to be kept: many at once cost one change between two processes. */
  tellMs: 10,
  /**
   * How long the main process may be silent, of the time in which it could have spoken; then its keeper ends it. A loop
   * that does not come round for so long answers nobody; the longest that is known of, a flood of dumps, takes 0.1 s.
   */
  silentMs: 750,
  /** The longest that the main process may say beforehand that it will be silent. */
  busyMs: 10_000,
  /** How long the keeper waits for a process that it has ended, until it takes its rules away all the same. */
  killMs: 2_000,
  /** How long a keeper may leave a beat unanswered; then it is ended, and another one is started. */
  deafMs: 3_000,
  /** How soon a keeper that ended is started again: at once, then later and later. */
  retryFirstMs: 50,
  retryLastMs: 60_000,
  /** Namespaces that a keeper takes: more than there are descriptors for. */
  namespaces: 65_536,
  /** How long a process that is to be replaced may take to stand still, and its successor to have taken everything over. */
  yieldMs: 2_000,
  takeMs: 15_000,
} as const;
