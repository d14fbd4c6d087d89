/**
 * PermanentRules: tables that outlive the process that creates them, and the removal of rules that no process owns, of
 * any rule backend.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NftSocket } from "../../kernel/nfnetlink.ts";
import { deleteCommands, permanentCommands } from "./nft-commands.ts";
import { removeChains } from "./iptables-chains.ts";
import { type IpFamily, TABLE_NAME, type TablePlan } from "./plan.ts";
import { PERMANENT_COMMENT, type InstalledRules, installedRules } from "./installed-rules.ts";

/** Installs tables that stay when this process ends, in place of earlier ones. */
export function installPermanentRules(memory: NetlinkMemory, plans: readonly TablePlan[]): void {
  removeUnownedRules(memory);
  withSocket(memory, (nft) => nft.transact(permanentCommands(plans, PERMANENT_COMMENT)));
}

/** Removes orphaned and permanent rules; returns their titles. */
export function removeUnownedRules(memory: NetlinkMemory): string[] {
  return installedRules(memory)
    .filter(({ owner }) => owner !== "instance")
    .map((rules) => {
      removeInstalledRules(memory, rules);
      return rules.title;
    });
}

/** Call inside the namespace. */
export function removeInstalledRules(memory: NetlinkMemory, { kind, family }: InstalledRules): void {
  if (kind === "table") removeTable(memory, family);
  else removeChains(family, undefined);
}

/** Removes our unowned table of one family. Call inside the namespace. */
export function removeTable(memory: NetlinkMemory, family: IpFamily): void {
  withSocket(memory, (nft) => nft.transact(deleteCommands({ family, name: TABLE_NAME })));
}

function withSocket(memory: NetlinkMemory, use: (nft: NftSocket) => void): void {
  const nft = new NftSocket(memory);
  try {
    use(nft);
  } finally {
    nft.close();
  }
}
