/** What recording where containers connect to may cost. */
export const EGRESS_LIMITS = {
  /**
   * Destinations of each container that the kernel records between two readings, for each IP version; a container that
   * scans fills its own set only. Then the same number in the history, for both.
   */
  kernel: 1_024,
  connections: 1_024,
  /** The same for all containers together: 200 bytes each. The container with the most gives up its oldest. */
  connectionsTotal: 100_000,
  /** How long the kernel keeps a destination that is not used any more: several readings. */
  kernelMs: 5 * 60_000,
  /** How long a datagram to a container has its answers told from connections of its own, and how many at a time. */
  incomingMs: 3 * 60_000,
  incoming: 1_024,
  /** How often the process reads what the kernel recorded. */
  readEveryMs: 30_000,
  /** Containers whose recording begins in one transaction. */
  batch: 16,
  /** Containers that have ended, and are still shown. */
  ended: 64,
  /** Addresses that each container was answered with, and names of each; the oldest are forgotten. */
  addresses: 1_024,
  names: 8,
  /** How long the names of a container that has ended are kept for its last connections. */
  lingerMs: 60_000,
} as const;
