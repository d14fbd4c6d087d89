/**
 * NftRuleSet: our rules as nf_tables tables; each change is one transaction. The kernel removes owned tables together
 * with the socket that owns them; unowned tables stay until they are deleted.
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

  /** Opens a socket in the namespace that the thread is in, or takes over one together with its tables. */
  constructor(isOwned: boolean, memory: NetlinkMemory, inherited?: HeldNamespace) {
    this.#isOwned = isOwned;
    this.#nft = new NftSocket(memory, inherited?.netlink);
    this.#families = inherited?.tables.map(({ family }) => family) ?? [];
  }

  get netlinkPort(): number {
    return this.#nft.port;
  }

  get removal(): Pick<HeldNamespace, "netlink" | "tables"> {
    return { netlink: this.#nft.fd, tables: this.#families.map((family) => ({ family, name: TABLE_NAME })) };
  }

  install(plans: readonly TablePlan[], existing: readonly InstalledRules[]): void {
    this.#families = existing.filter(({ kind }) => kind === "table").map(({ family }) => family);
    try {
      this.replaceTables(plans);
    } catch (error) {
      if (error instanceof SystemFault && error.code === "EPERM") throw ownedElsewhere(tableTitle("ip"), error);
      throw error;
    }
    for (const { kind, family } of existing) if (kind === "chains") removeLegacyChains(family);
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
        // It may be gone already. An owned table disappears in any case when the socket closes.
      }
    }
  }

  close(): void {
    this.#nft.close();
  }
}

/**
 * Removes our iptables-legacy chains, if possible: our tables take precedence, a probe detects whether the chains are
 * in the way, and the doctor reports them.
 */
function removeLegacyChains(family: IpFamily): void {
  try {
    removeChains(family, undefined);
  } catch {
    // Root in the container may have added jumps that keep the kernel from deleting them.
  }
}
