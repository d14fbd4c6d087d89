/**
 * RuleTier: by what our rules stand in a namespace. Owned tables go with the process that made them, however it ends; the
 * two others stay behind when it is killed, and are for machines that have nothing better.
 */
export const RULE_TIERS = ["nft-owner", "nft", "iptables-legacy"] as const;

export type RuleTier = (typeof RULE_TIERS)[number];

/** What may be wished for: the best that the machine can do, or one of them and no other. */
export const RULE_WISHES = ["auto", ...RULE_TIERS] as const;

export type RuleWish = (typeof RULE_WISHES)[number];

/** A tier as it is here. */
export interface RuleMeans {
  readonly tier: RuleTier;
  /** Conversations can be given a connection tracking zone of their own. */
  readonly hasZones: boolean;
}
