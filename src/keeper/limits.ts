/**
 * KeeperLimits: the keeper's limits, each with its reason.
 */
export const KEEPER_LIMITS = {
  /** How often the main process sends a heartbeat, and how often the keeper checks when nothing arrives. */
  beatMs: 200,
  pollMs: 100,
  /** How long changes are collected before they are sent: many at once cost one switch between the two processes. */
  batchMs: 10,
  /**
   * How long the main process and the keeper may be silent, counting only time in which they could run; then the other one kills
   * it. An event loop blocked for this long answers no query; the longest known block, a flood of netlink dumps, takes 0.1 s. While
   * the keeper is silent, nobody would hand the containers of a killed main process back.
   */
  silentMs: 750,
  /** The part of the time in which the main process waits for the kernel that counts as silence. */
  kernelWaitDivisor: 8,
  /** How long the keeper waits for a process that it has killed before it removes the rules anyway. */
  killMs: 2_000,
  killPollMs: 5,
  /**
   * The same for a keeper that passes everything on to a new process, for which it may wait, and for one that cannot be seen, so
   * that all time counts; and for one that starts, which takes seconds on a busy machine.
   */
  unresponsiveMs: 3_000,
  startMs: 30_000,
  /** Threads of the keeper, in which calls wait for locks of namespaces: as many may be locked when it hands back. 8 KB each. */
  poolThreads: 32,
  /** When it hands back: the time until it logs what has been handed back, and goes on waiting for the others. */
  handBackMs: 1_000,
  /** Backoff for restarting a keeper that exited. */
  retryFirstMs: 50,
  retryLastMs: 5_000,
  /** Namespaces that a keeper holds at most: more than there are descriptors for. */
  namespaces: 65_536,
  /**
   * While it refuses: packets of a socket in one round, and bytes of each that are read, which every question fits into. TCP
   * connections of all namespaces together, and how long each may last.
   */
  refusedBatch: 32,
  refusedBytes: 512,
  refusedConnections: 128,
  refusedConnectionMs: 10_000,
  /** How long a process that lets the keeper refuse waits until it has been told so. */
  tellMs: 2_000,
  /** How long a new process may take to learn all containers before it requests the takeover; it changes nothing until then. */
  learnMs: 60_000,
  /**
   * How long a process that is to be replaced may take to pause: it serves meanwhile, so a busy machine gets time. And
   * how long the new process may take to take over.
   */
  yieldMs: 10_000,
  takeMs: 15_000,
} as const;
