/**
 * PermanentRules: tables that outlive the process that creates them, and the removal of rules that no process owns, of
 * any rule backend.
 */
import { NftSocket, type NftCommand } from "../../kernel/nfnetlink.ts";
import { deleteCommands, permanentCommands } from "./nft-commands.ts";
import { removeChains } from "./iptables-chains.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { type IpFamily, TABLE_NAME, type TablePlan } from "./plan.ts";
import { PERMANENT_COMMENT, type InstalledRules, installedRules } from "./installed-rules.ts";

/** Installs tables that stay when this process ends, in place of earlier ones. */
export async function installPermanentRules(netns: NetNamespace, plans: readonly TablePlan[]): Promise<void> {
  await removeUnownedRules(netns);
  await transactIn(netns, permanentCommands(plans, PERMANENT_COMMENT));
}

/** Removes orphaned and permanent rules; returns their titles. */
export async function removeUnownedRules(netns: NetNamespace): Promise<string[]> {
  const unowned = (await installedRules(netns)).filter(({ owner }) => owner !== "instance");
  for (const rules of unowned) await removeInstalledRules(netns, rules);
  return unowned.map(({ title }) => title);
}

export async function removeInstalledRules(netns: NetNamespace, { kind, family }: InstalledRules): Promise<void> {
  if (kind === "table") await removeTable(netns, family);
  else await removeChains(family, netns.fd);
}

/** Removes our unowned table of one family. */
export async function removeTable(netns: NetNamespace, family: IpFamily): Promise<void> {
  await transactIn(netns, deleteCommands({ family, name: TABLE_NAME }));
}

async function transactIn(netns: NetNamespace, commands: readonly NftCommand[]): Promise<void> {
  const nft = netns.within(() => new NftSocket(netns.memory));
  try {
    await netns.transact(nft, commands);
  } finally {
    nft.close();
  }
}
