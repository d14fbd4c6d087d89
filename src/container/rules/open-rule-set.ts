/**
 * OpenRuleSet: creates the RuleSet of the chosen rule backend.
 */
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import { IptablesRuleSet } from "./iptables-rule-set.ts";
import { NftRuleSet } from "./nft-rule-set.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { RuleSet } from "./rule-set.ts";

/** The descriptor of the namespace must stay open as long as the rule set is used. */
export function openRuleSet(choice: RuleBackendChoice, netns: NetNamespace): RuleSet {
  if (choice.backend === "iptables-legacy") return new IptablesRuleSet(choice.hasZones, netns);
  return new NftRuleSet(choice.backend === "nft-owner", netns);
}

/** Takes over installed tables together with the socket that owns them. */
export function inheritRuleSet(choice: RuleBackendChoice, netns: NetNamespace, held: HeldNamespace): RuleSet {
  return new NftRuleSet(choice.backend === "nft-owner", netns, held);
}
