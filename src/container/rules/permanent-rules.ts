/**
 * PermanentRules: tables that outlive the process that creates them, and the removal of tables that no process owns.
 */
import { NftSocket, type NftCommand } from "../../kernel/nfnetlink.ts";
import { deleteCommands, permanentCommands } from "./nft-commands.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { type IpFamily, TABLE_NAME, type TablePlan } from "./plan.ts";
import { PERMANENT_COMMENT, installedRules } from "./installed-rules.ts";

/** Installs tables that stay when this process ends, in place of earlier ones. */
export async function installPermanentRules(netns: NetNamespace, plans: readonly TablePlan[]): Promise<void> {
  await removeUnownedRules(netns);
  await transactIn(netns, permanentCommands(plans, PERMANENT_COMMENT));
}

/** Removes orphaned and permanent rules; returns their titles. */
export async function removeUnownedRules(netns: NetNamespace): Promise<string[]> {
  const unowned = (await installedRules(netns)).filter(({ owner }) => owner !== "instance");
  for (const { family } of unowned) await removeTable(netns, family);
  return unowned.map(({ title }) => title);
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
