/**
 * Guard count: how many packets our guards have dropped in a namespace, as the kernel counts them.
 */
import { attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { visitTables } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-vocabulary.ts";
import { hasOurChains } from "./iptables-chains.ts";
import { droppedIn } from "./iptables-text.ts";
import { iptablesTool } from "./iptables-tool.ts";
import { FAMILIES, type Family, GUARD_CHAIN, TABLE_NAME } from "./plan.ts";

/** To be called inside the namespace. Counting begins anew whenever the rules are replaced. */
export function countDropped(memory: NetlinkMemory): number {
  return droppedByTables(memory) + FAMILIES.reduce((sum, family) => sum + droppedByChains(family), 0);
}

function droppedByTables(memory: NetlinkMemory): number {
  let dropped = 0;
  visitTables(memory, nft.NFT_MSG_GETRULE, 0, (_, bytes) => {
    const attributes = attributesIn(bytes);
    if (textOf(attributes.get(nft.NFTA_RULE_TABLE)) !== TABLE_NAME) return;
    if (textOf(attributes.get(nft.NFTA_RULE_CHAIN)) !== GUARD_CHAIN) return;
    const expressions = attributeList(attributes.get(nft.NFTA_RULE_EXPRESSIONS) ?? Buffer.alloc(0));
    for (const [, expression] of expressions) dropped += packetsOf(attributesIn(expression));
  });
  return dropped;
}

function droppedByChains(family: Family): number {
  return hasOurChains(family) ? droppedIn(iptablesTool().save(family, undefined)) : 0;
}

function packetsOf(expression: ReadonlyMap<number, Buffer>): number {
  if (textOf(expression.get(nft.NFTA_EXPR_NAME)) !== "counter") return 0;
  const data = attributesIn(expression.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0));
  return Number(data.get(nft.NFTA_COUNTER_PACKETS)?.readBigUInt64BE(0) ?? 0n);
}
