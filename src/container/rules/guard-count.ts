/**
 * GuardCount: how many packets our guard chains have dropped in a namespace, as counted by the kernel. If it cannot be read, for want
 * of a descriptor or because the namespace is going away, the count that was read last stays.
 */
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { packetsIn } from "./drop-counters.ts";
import { IP_FAMILIES, GUARD_CHAIN } from "./plan.ts";
import { visitRulesOf } from "./installed-rules.ts";

type Readable = Pick<NetNamespace, "within" | "memory">;

export class GuardCount {
  /** It restarts at 0 when rules are replaced, and when the namespace is no longer served. */
  last = 0;

  read(netns: Readable): void {
    try {
      this.last = netns.within(() => droppedByTables(netns.memory));
    } catch {
      // Report the last count.
    }
  }
}

function droppedByTables(memory: NetlinkMemory): number {
  let dropped = 0;
  for (const family of IP_FAMILIES) {
    visitRulesOf(memory, family, GUARD_CHAIN, (attributes) => {
      dropped += packetsIn(attributes.get(nft.NFTA_RULE_EXPRESSIONS));
    });
  }
  return dropped;
}
