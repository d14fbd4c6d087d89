/**
 * OpenRuleSet: creates the RuleSet of the chosen rule backend.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import { IptablesRuleSet } from "./iptables-rule-set.ts";
import type { NamespaceFd } from "./iptables-tool.ts";
import { NftRuleSet } from "./nft-rule-set.ts";
import type { RuleSet } from "./rule-set.ts";

/** Call inside the namespace of `namespace`, which must stay open as long as the rule set. */
export function openRuleSet(choice: RuleBackendChoice, memory: NetlinkMemory, namespace: NamespaceFd): RuleSet {
  if (choice.backend === "iptables-legacy") return new IptablesRuleSet(choice.hasZones, memory, namespace);
  return new NftRuleSet(choice.backend === "nft-owner", memory);
}

/** Takes over installed tables together with the socket that owns them. Call in any namespace. */
export function inheritRuleSet(choice: RuleBackendChoice, memory: NetlinkMemory, held: HeldNamespace): RuleSet {
  return new NftRuleSet(choice.backend === "nft-owner", memory, held);
}
