/**
 * GuardCount: how many packets our guard chains have dropped in a namespace, as counted by the kernel. If the count
 * cannot be read, for want of a descriptor or because the namespace is going away, the last one is reported. It is read
 * often, and so without starting iptables.
 */
import { attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { droppedInChain, xtablesIn } from "../../kernel/xtables.ts";
import { GUARD_LOCATION } from "./iptables-text.ts";
import { IP_FAMILIES, type IpFamily, GUARD_CHAIN } from "./plan.ts";
import { visitRulesOf } from "./installed-rules.ts";

export class GuardCount {
  #last = 0;

  /** Reads the count. It restarts at 0 when rules are replaced, and when the namespace is not served (no `within`). */
  count(within: ((work: () => number) => number) | undefined, memory: NetlinkMemory): number {
    if (within === undefined) return (this.#last = 0);
    try {
      this.#last = within(
        () => droppedByTables(memory) + IP_FAMILIES.reduce((sum, each) => sum + droppedByChains(each), 0),
      );
    } catch {
      // Report the last count.
    }
    return this.#last;
  }
}

function droppedByTables(memory: NetlinkMemory): number {
  let dropped = 0;
  for (const family of IP_FAMILIES) {
    visitRulesOf(memory, family, GUARD_CHAIN, (attributes) => {
      const expressions = attributeList(attributes.get(nft.NFTA_RULE_EXPRESSIONS) ?? Buffer.alloc(0));
      for (const [, expression] of expressions) dropped += packetsOf(attributesIn(expression));
    });
  }
  return dropped;
}

function droppedByChains(family: IpFamily): number {
  const { table, chain } = GUARD_LOCATION;
  return xtablesIn(family).includes(table) ? droppedInChain(family, table, chain) : 0;
}

function packetsOf(expression: ReadonlyMap<number, Buffer>): number {
  if (textOf(expression.get(nft.NFTA_EXPR_NAME)) !== "counter") return 0;
  const data = attributesIn(expression.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0));
  return Number(data.get(nft.NFTA_COUNTER_PACKETS)?.readBigUInt64BE(0) ?? 0n);
}
