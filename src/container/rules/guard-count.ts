/**
 * Guard count: how many packets our guards have dropped in a namespace, as the kernel counts them. Whoever asks how we are
 * is told in any case: where it cannot be looked up, for want of a descriptor or because the namespace is on its way out,
 * by what was seen last. It is asked for often, so that no program is started for it.
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

  /** Counting begins anew whenever the rules are replaced, and where nobody is served any more (there is no `within`). */
  count(within: ((work: () => number) => number) | undefined, memory: NetlinkMemory): number {
    if (within === undefined) return (this.#last = 0);
    try {
      this.#last = within(
        () => droppedByTables(memory) + IP_FAMILIES.reduce((sum, each) => sum + droppedByChains(each), 0),
      );
    } catch {
      // The next time may go better.
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
