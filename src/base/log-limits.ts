/**
 * LogLimits: how much is logged, as part of LIMITS. Containers and servers cause most lines, so each has its own room.
 */
export const LOG_LIMITS = {
  /** A line with the same subject and text is logged once in this time, with the number of those held back. */
  logRepeatMs: 600_000,
  /** Different lines about one container or server in that time. */
  logLinesPerSubject: 4,
  /** How many subjects are tracked. */
  logSubjects: 4_096,
  /**
   * Lines with one text in so much time: the first line of each container or server, and beyond these so many of all and of
   * each. So none uses up the room of another.
   */
  logKindMs: 60_000,
  logOwnersPerKind: 400,
  logLinesPerKind: 100,
  logLinesPerOwner: 8,
  /** A server that goes down or comes back is logged so much sooner again: it concerns everybody. */
  logServerMs: 60_000,
  /** Names of failed lookups that are logged for one container, within `logRepeatMs`; and how much of a name. */
  logNames: 16,
  logNameChars: 300,
} as const;
