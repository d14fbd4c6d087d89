/**
 * Limits of what a swarm sends, as part of `LIMITS`.
 */
export const SWARM_LIMITS = {
  /**
   * How long an answer of Docker's resolver is repeated, and for how long clients may keep it: two seconds together. It
   * knows of a change as soon as gossip does; nothing else would tell dns11.
   */
  swarmFreshMs: 1_000,
  swarmTtlSeconds: 1,
  /**
   * While Docker's resolver does not answer, its last answers stand in for so long: longer than a restart or an upgrade
   * of dockerd takes. Services keep their addresses meanwhile, tasks may not. After that their names fail.
   */
  swarmLastKnownMs: 600_000,
  /** How long one question waits for Docker's resolver; then it counts as away, for all questions of the next second. */
  swarmAskMs: 2_000,
  swarmAwayMs: 1_000,
  /** Names of one container whose last answers are kept; the oldest gives way. */
  swarmNamesKept: 512,
  /** Addresses of one answer; the rest is left out. */
  swarmAddresses: 1_024,
  /** Questions that one query may need: a declared name can lead to several. */
  swarmPasses: 10,
  /**
   * Names of one container that Docker's resolver does not know, each of which it logs. A container that asks for more
   * gets SERVFAIL for them, unless they were unknown within `swarmFreshMs`.
   */
  swarmUnknown: { burst: 40, perSecond: 20 },

  /** How often the engine's list of a network's services is read, and how soon again if a name is not in it. */
  swarmPollMs: 10_000,
  swarmPollAgainMs: 1_000,
  /** Networks whose list is read in one round; with more, they take turns. */
  swarmNetworks: 32,
  /** Bytes of one list, and its services and tasks. A longer one is not read; of more tasks, the rest is left out. */
  swarmListBytes: 2 * 1024 * 1024,
  swarmServices: 1_024,
  swarmTasks: 8_192,
  /** How long a service that is no longer listed keeps its name from going upstream: it may have no healthy task. */
  swarmServiceMs: 3_600_000,
} as const;
