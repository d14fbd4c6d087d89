/**
 * RuleBackend: how our rules are installed in a namespace. Owned tables are removed with the process that made them,
 * however it ends. The two other backends leave rules behind when it is killed, and are for machines without owned
 * tables.
 */
export const RULE_BACKENDS = ["nft-owner", "nft", "iptables-legacy"] as const;

export type RuleBackend = (typeof RULE_BACKENDS)[number];

/** Values of the setting: the best backend of the machine, or one and no other. */
export const RULE_BACKEND_SETTINGS = ["auto", ...RULE_BACKENDS] as const;

export type RuleBackendSetting = (typeof RULE_BACKEND_SETTINGS)[number];

/** The backend in use. */
export interface RuleBackendChoice {
  readonly backend: RuleBackend;
  /** Conversations can have their own connection tracking zone. */
  readonly hasZones: boolean;
}
