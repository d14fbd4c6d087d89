/**
 * RuleSet: our rules in one namespace, as nf_tables tables; each change is one transaction, without a gap in which a query is lost.
 * The kernel removes owned tables together with the socket that owns them; unowned tables stay until they are deleted. Every change
 * waits for a lock of the namespace, so it is made by others than the calling thread, and one after the other.
 */
import { SystemFault } from "../../kernel/libc.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { RuleBackend } from "../../base/model/rule-backend.ts";
import { NftSocket } from "../../kernel/nfnetlink.ts";
import { deleteCommand, replaceTableCommands, replaceRuleCommands } from "./nft-commands.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { type IpFamily, TABLE_NAME, type TablePlan } from "./plan.ts";
import { type InstalledRules, ownedElsewhere, tableTitle } from "./installed-rules.ts";

export class RuleSet {
  readonly #nft: NftSocket;
  readonly #isOwned: boolean;
  readonly #netns: NetNamespace;
  #families: readonly IpFamily[] = [];

  /**
   * Opens a socket in the namespace, or takes over one together with its tables. The descriptor of the namespace must stay open as
   * long as the rule set is used.
   */
  constructor(backend: RuleBackend, netns: NetNamespace, inherited?: HeldNamespace) {
    this.#isOwned = backend === "nft-owner";
    this.#netns = netns;
    this.#nft = netns.within(() => new NftSocket(netns.memory, inherited?.netlink));
    this.#families = inherited?.tables.flatMap(({ family }) => (family === "bridge" ? [] : family)) ?? [];
  }

  /** Under which the kernel reports our own changes. */
  get netlinkPort(): number {
    return this.#nft.port;
  }

  /** What another process needs to remove the rules. */
  get removal(): Pick<HeldNamespace, "netlink" | "tables" | "isOwned"> {
    return {
      netlink: this.#nft.fd,
      isOwned: this.#isOwned,
      tables: this.#families.map((family) => ({ family, name: TABLE_NAME })),
    };
  }

  /** Installs the plans in place of what is installed. */
  async install(plans: readonly TablePlan[], existing: readonly InstalledRules[]): Promise<void> {
    this.#families = existing.map(({ family }) => family);
    try {
      await this.replaceTables(plans);
    } catch (error) {
      if (error instanceof SystemFault && error.code === "EPERM") throw ownedElsewhere(tableTitle("ip"), error);
      throw error;
    }
  }

  /** Replaces the rules of the existing chains. */
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
        await this.#netns.transact(this.#nft, [deleteCommand({ family, name: TABLE_NAME })]);
      } catch {
        // It may be gone already. An owned table disappears in any case when the socket closes.
      }
    }
  }

  close(): void {
    this.#nft.close();
  }
}
