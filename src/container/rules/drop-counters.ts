/**
 * DropCounters: how many packets the rules of a table have dropped, by kind. Each kind has a chain of its own with one rule, which
 * other chains go to. The numbers never decrease, also when the table is made again. If they cannot be read, the last ones stay.
 */
import { guard } from "../../base/lib/guard.ts";
import { attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { type NftCommand, visitTables } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import type { NftTable } from "../../kernel/nft-table.ts";
import { counter, drop } from "../../kernel/nft-expressions.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { IP_FAMILIES, GUARD_CHAIN } from "./plan.ts";
import { visitRulesOf } from "./installed-rules.ts";

export function dropChains(table: NftTable, kinds: readonly string[]): NftCommand[] {
  return kinds.flatMap((kind) => [table.chain(kind), ...table.rules(kind, [[counter, drop]])]);
}

type Counts<K extends string> = Record<K, number>;

export class DropCounters<K extends string> {
  readonly #table: string;
  readonly #kinds: readonly K[];
  /** Of tables that are gone. */
  #before: Counts<K>;
  #last: Counts<K>;

  constructor(table: string, kinds: readonly K[]) {
    this.#table = table;
    this.#kinds = kinds;
    this.#before = this.#last = this.#none();
  }

  read(netns: Pick<NetNamespace, "within" | "memory">): Readonly<Counts<K>> {
    try {
      const now = netns.within(() => this.#counted(netns.memory));
      for (const kind of this.#kinds) now[kind] += this.#before[kind];
      this.#last = now;
    } catch (error) {
      guard.report(error, "netlink");
    }
    return this.#last;
  }

  /** The table is about to be replaced, or removed. */
  keep(netns: Pick<NetNamespace, "within" | "memory">): void {
    this.#before = this.read(netns);
  }

  #counted(memory: NetNamespace["memory"]): Counts<K> {
    const counts = this.#none();
    const select = { command: nft.NFT_MSG_GETRULE, family: 0 };
    visitTables(memory, { ...select, select: (w) => w.text(nft.NFTA_RULE_TABLE, this.#table) }, (_family, bytes) => {
      const attributes = attributesIn(bytes);
      // The kernel may list the rules of all tables.
      if (textOf(attributes.get(nft.NFTA_RULE_TABLE)) !== this.#table) return;
      const chain = textOf(attributes.get(nft.NFTA_RULE_CHAIN));
      const kind = this.#kinds.find((each) => each === chain);
      if (kind !== undefined) counts[kind] += packetsIn(attributes.get(nft.NFTA_RULE_EXPRESSIONS));
    });
    return counts;
  }

  #none(): Counts<K> {
    return Object.fromEntries(this.#kinds.map((kind) => [kind, 0])) as Counts<K>;
  }
}

/** What the counters of a rule have counted. */
function packetsIn(expressions: Buffer | undefined): number {
  let packets = 0;
  for (const [, one] of expressions === undefined ? [] : attributeList(expressions)) {
    const expression = attributesIn(one);
    if (textOf(expression.get(nft.NFTA_EXPR_NAME)) !== "counter") continue;
    const data = attributesIn(expression.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0));
    packets += Number(data.get(nft.NFTA_COUNTER_PACKETS)?.readBigUInt64BE(0) ?? 0n);
  }
  return packets;
}

type Readable = Pick<NetNamespace, "within" | "memory">;

/**
 * How many packets our guard chains have dropped in a namespace, as counted by the kernel. If it cannot be read, for want
 * of a descriptor or because the namespace is going away, the count that was read last stays.
 */
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
