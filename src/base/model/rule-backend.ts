/**
 * RuleBackend: how our rules are installed in a namespace. Owned tables are removed with the process that made them,
 * however it ends. Without an owner they stay when it is killed, which is for machines without owned tables.
 */
export const RULE_BACKENDS = ["nft-owner", "nft"] as const;

export type RuleBackend = (typeof RULE_BACKENDS)[number];

/** The values of the setting: the best backend of the machine, or exactly one backend. */
export const RULE_BACKEND_SETTINGS = ["auto", ...RULE_BACKENDS] as const;

export type RuleBackendSetting = (typeof RULE_BACKEND_SETTINGS)[number];

/** The backend in use. */
export interface RuleBackendChoice {
  readonly backend: RuleBackend;
  /** Rules can match the control group of the sender. */
  readonly matchesGroups?: boolean;
}
