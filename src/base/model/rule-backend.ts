/**
 * RuleTier: by what our rules stand in a namespace. Owned tables go with the process that made them, however it ends; the
 * two others stay behind when it is killed, and are for machines that have nothing better.
 */
export const RULE_BACKENDS = ["nft-owner", "nft", "iptables-legacy"] as const;

export type RuleBackend = (typeof RULE_BACKENDS)[number];

/** What may be wished for: the best that the machine can do, or one of them and no other. */
export const RULE_BACKEND_SETTINGS = ["auto", ...RULE_BACKENDS] as const;

export type RuleBackendSetting = (typeof RULE_BACKEND_SETTINGS)[number];

/** A tier as it is here. */
export interface RuleBackendChoice {
  readonly backend: RuleBackend;
  /** Conversations can be given a connection tracking zone of their own. */
  readonly hasZones: boolean;
}
