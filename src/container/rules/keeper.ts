/**
 * Which keeper holds the rules of a namespace, by the tier.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { RuleMeans } from "../../base/model/rule-tier.ts";
import { IptablesKeeper } from "./iptables-keeper.ts";
import type { Place } from "./iptables-tool.ts";
import { NftKeeper } from "./nft-keeper.ts";
import type { RuleKeeper } from "./rule-keeper.ts";

/** To be called inside the namespace that is behind `place`, which stays open as long as the keeper does. */
export function openKeeper(means: RuleMeans, memory: NetlinkMemory, place: Place): RuleKeeper {
  if (means.tier === "iptables-legacy") return new IptablesKeeper(means.hasZones, memory, place);
  return new NftKeeper(means.tier === "nft-owner", memory);
}

/** Takes over what stands already, with the socket that it belongs to; to be called from wherever the thread is. */
export function inheritKeeper(means: RuleMeans, memory: NetlinkMemory, left: HeldNamespace): RuleKeeper {
  return new NftKeeper(means.tier === "nft-owner", memory, left);
}
