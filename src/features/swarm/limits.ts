/** What the engine lists of a swarm, which other machines have written. */
export const SWARM_LIMITS = {
  /** How often the engine's list of a network's services is read, and how soon again if a name is not in it. */
  pollMs: 10_000,
  pollAgainMs: 1_000,
  /** Networks whose list is read in one round; with more, they take turns. */
  networks: 32,
  /** Bytes of one list, and its services and tasks. A longer one is not read; of more tasks, the rest is left out. */
  listBytes: 2 * 1024 * 1024,
  services: 1_024,
  tasks: 8_192,
  /** How long a service that is no longer listed keeps its name from going upstream: it may have no healthy task. */
  serviceMs: 3_600_000,
} as const;
