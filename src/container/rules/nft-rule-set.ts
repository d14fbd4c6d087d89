/**
 * NftKeeper: our rules as tables of nf_tables, each change one transaction. Where the tables are owned, the kernel takes
 * them away with the socket; where they are not, they stay until somebody removes them.
 */
import { SystemFault } from "../../kernel/libc.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import { NftSocket } from "../../kernel/nfnetlink.ts";
import { deleteCommands, replaceTableCommands, replaceRuleCommands } from "./nft-commands.ts";
import { removeChains } from "./iptables-chains.ts";
import type { RuleSet } from "./rule-set.ts";
import { type IpFamily, TABLE_NAME, type TablePlan } from "./plan.ts";
import { type InstalledRules, ownedElsewhere, tableTitle } from "./installed-rules.ts";

export class NftRuleSet implements RuleSet {
  readonly #nft: NftSocket;
  readonly #isOwned: boolean;
  #families: readonly IpFamily[] = [];

  /** With a socket of the namespace that the thread is in, or with one that was left to us together with its tables. */
  constructor(isOwned: boolean, memory: NetlinkMemory, left?: HeldNamespace) {
    this.#isOwned = isOwned;
    this.#nft = new NftSocket(memory, left?.netlink);
    this.#families = left?.tables.map(({ family }) => family) ?? [];
  }

  get netlinkPort(): number {
    return this.#nft.port;
  }

  get removal(): Pick<HeldNamespace, "netlink" | "tables"> {
    return { netlink: this.#nft.fd, tables: this.#families.map((family) => ({ family, name: TABLE_NAME })) };
  }

  install(plans: readonly TablePlan[], standing: readonly InstalledRules[]): void {
    this.#families = standing.filter(({ kind }) => kind === "table").map(({ family }) => family);
    try {
      this.replaceTables(plans);
    } catch (error) {
      if (error instanceof SystemFault && error.code === "EPERM") throw ownedElsewhere(tableTitle("ip"), error);
      throw error;
    }
    for (const { kind, family } of standing) if (kind === "chains") removeOlder(family);
  }

  replaceRules(plans: readonly TablePlan[]): void {
    this.#nft.transact(replaceRuleCommands(plans));
  }

  replaceTables(plans: readonly TablePlan[]): void {
    this.#nft.transact(replaceTableCommands(this.#families, plans, this.#isOwned));
    this.#families = plans.map(({ family }) => family);
  }

  remove(): void {
    for (const family of this.#families) {
      try {
        this.#nft.transact(deleteCommands({ family, name: TABLE_NAME }));
      } catch {
        // Somebody has removed it already. If it is owned, closing the socket takes it away whatever happens.
      }
    }
  }

  close(): void {
    this.#nft.close();
  }
}

/** Ours come first, and a probe finds out whether what stays is in the way: the doctor tells of it, too. */
function removeOlder(family: IpFamily): void {
  try {
    removeChains(family, undefined);
  } catch {
    // Who is root in there may have made them so that they cannot go.
  }
}
