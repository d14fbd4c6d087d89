/**
 * GuardCount: how many packets our guard chains have dropped in a namespace, as counted by the kernel. Reading it may have to wait
 * for others' locks, so a report has the count that was read last. If it cannot be read, for want of a descriptor or because the
 * namespace is going away, that stays. It is read often, and so without starting iptables.
 */
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { droppedInChain, readXtables } from "../../kernel/xtables.ts";
import { packetsIn } from "./drop-counters.ts";
import { GUARD_LOCATION } from "./our-chains.ts";
import { IP_FAMILIES, type IpFamily, GUARD_CHAIN } from "./plan.ts";
import { visitRulesOf } from "./installed-rules.ts";

type Readable = Pick<NetNamespace, "within" | "memory">;

export class GuardCount {
  #isReading = false;
  /** It restarts at 0 when rules are replaced, and when the namespace is no longer served. */
  last = 0;

  async read(netns: Readable): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      let dropped = netns.within(() => droppedByTables(netns.memory));
      for (const family of IP_FAMILIES) dropped += await droppedByChains(netns, family);
      this.last = dropped;
    } catch {
      // Report the last count.
    } finally {
      this.#isReading = false;
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

async function droppedByChains({ within }: Readable, family: IpFamily): Promise<number> {
  const { table, chain } = GUARD_LOCATION;
  const found = (await readXtables(within, family))?.get(table);
  return found === undefined ? 0 : await droppedInChain(family, found, chain);
}
