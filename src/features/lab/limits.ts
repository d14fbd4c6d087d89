/** What the clients of the control socket may have of leases; a query looks at the rules for its name. */
export const LAB_LIMITS = {
  /** Leases that are open: in all, and of one process. */
  leases: 48,
  leasesEach: 16,
  /** Their rules and recordings: in all, and of one process. */
  rules: 10_000,
  rulesEach: 5_000,
  /** Those for one name or pattern, likewise: a query of it looks at each. */
  nameRules: 1_024,
  nameRulesEach: 512,
  /** Different choices of containers in them: each is made again when containers change. */
  scopes: 64,
  lineBytes: 64 * 1024,
} as const;
