export const KERNEL_ANSWER_LIMITS = {
  /** Namespaces with answers in the kernel; answers until the names change, and for some seconds: in all, of one, of each whatever the others have. */
  spaces: 4_096,
  answers: { whole: 65_536, each: 16_384, always: 16 },
  brief: { whole: 6_144, each: 3_072, always: 8 },
  /** Backoff where answers of the kernel did not arrive in a namespace; and its beginning after rules have changed there. */
  retryFirstMs: 60_000,
  retryAfterChangeMs: 1_000,
  retryLastMs: 3_600_000,
  /** The pause between two namespaces whose programs are attached: so other programs have the kernel's lock most of the time. */
  attachPauseMs: 100,
  /** The thread that attaches them ends so long after the last one: the first time, and at most. */
  threadIdleFirstMs: 5_000,
  threadIdleLastMs: 86_400_000,
} as const;
