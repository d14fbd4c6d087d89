/**
 * Which keeper holds the rules of a namespace, by the tier.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import { IptablesRuleSet } from "./iptables-rule-set.ts";
import type { NamespaceFd } from "./iptables-tool.ts";
import { NftRuleSet } from "./nft-rule-set.ts";
import type { RuleSet } from "./rule-set.ts";

/** To be called inside the namespace that is behind `place`, which stays open as long as the keeper does. */
export function openRuleSet(means: RuleBackendChoice, memory: NetlinkMemory, place: NamespaceFd): RuleSet {
  if (means.backend === "iptables-legacy") return new IptablesRuleSet(means.hasZones, memory, place);
  return new NftRuleSet(means.backend === "nft-owner", memory);
}

/** Takes over what stands already, with the socket that it belongs to; to be called from wherever the thread is. */
export function inheritRuleSet(means: RuleBackendChoice, memory: NetlinkMemory, left: HeldNamespace): RuleSet {
  return new NftRuleSet(means.backend === "nft-owner", memory, left);
}
