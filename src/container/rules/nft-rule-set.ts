/**
 * NftRuleSet: our rules as nf_tables tables; each change is one transaction. The kernel removes owned tables together
 * with the socket that owns them; unowned tables stay until they are deleted.
 */
import { SystemFault } from "../../kernel/libc.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import { NftSocket } from "../../kernel/nfnetlink.ts";
import { deleteCommands, replaceTableCommands, replaceRuleCommands } from "./nft-commands.ts";
import { removeChains } from "./iptables-chains.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { RuleSet } from "./rule-set.ts";
import { type IpFamily, TABLE_NAME, type TablePlan } from "./plan.ts";
import { type InstalledRules, ownedElsewhere, tableTitle } from "./installed-rules.ts";

export class NftRuleSet implements RuleSet {
  readonly #nft: NftSocket;
  readonly #isOwned: boolean;
  readonly #netns: NetNamespace;
  #families: readonly IpFamily[] = [];

  /** Opens a socket in the namespace, or takes over one together with its tables. */
  constructor(isOwned: boolean, netns: NetNamespace, inherited?: HeldNamespace) {
    this.#isOwned = isOwned;
    this.#netns = netns;
    this.#nft = netns.within(() => new NftSocket(netns.memory, inherited?.netlink));
    this.#families = inherited?.tables.flatMap(({ family }) => (family === "bridge" ? [] : family)) ?? [];
  }

  get netlinkPort(): number {
    return this.#nft.port;
  }

  get removal(): Pick<HeldNamespace, "netlink" | "tables" | "isOwned"> {
    return {
      netlink: this.#nft.fd,
      isOwned: this.#isOwned,
      tables: this.#families.map((family) => ({ family, name: TABLE_NAME })),
    };
  }

  async install(plans: readonly TablePlan[], existing: readonly InstalledRules[]): Promise<void> {
    this.#families = existing.filter(({ kind }) => kind === "table").map(({ family }) => family);
    try {
      await this.replaceTables(plans);
    } catch (error) {
      if (error instanceof SystemFault && error.code === "EPERM") throw ownedElsewhere(tableTitle("ip"), error);
      throw error;
    }
    for (const { kind, family } of existing) if (kind === "chains") await removeLegacyChains(family, this.#netns.fd);
  }

  async replaceRules(plans: readonly TablePlan[]): Promise<void> {
    await this.#netns.transact(this.#nft, replaceRuleCommands(plans));
  }

  async replaceTables(plans: readonly TablePlan[]): Promise<void> {
    await this.#netns.transact(this.#nft, replaceTableCommands(this.#families, plans, this.#isOwned));
    this.#families = plans.map(({ family }) => family);
  }

  async remove(): Promise<void> {
    for (const family of this.#families) {
      try {
        await this.#netns.transact(this.#nft, deleteCommands({ family, name: TABLE_NAME }));
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
async function removeLegacyChains(family: IpFamily, namespace: number): Promise<void> {
  try {
    await removeChains(family, namespace);
  } catch {
    // Root in the container may have added jumps that keep the kernel from deleting them.
  }
}
