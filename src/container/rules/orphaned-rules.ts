/**
 * OrphanedRules: removes our rules that no running process owns from a namespace.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import { installedRules, PERMANENT_COMMENT } from "./installed-rules.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { NftSocket, type NftCommand } from "../../kernel/nfnetlink.ts";
import { deleteCommand, permanentCommands } from "./nft-commands.ts";
import { type IpFamily, TABLE_NAME, type TablePlan } from "./plan.ts";

export interface CleanupResult {
  /** One line for each action. */
  readonly did: readonly string[];
  /** One line for each failure. While there are any, the records of what to clean up are kept. */
  readonly failed: readonly string[];
}

export async function removeOrphanedRules(netns: NetNamespace): Promise<CleanupResult> {
  const did: string[] = [];
  const failed: string[] = [];
  for (const { family, title, owner } of await installedRules(netns)) {
    if (owner === "permanent")
      did.push(`kept ${title}: installed permanently from inside the node (dns11 run --in-node --once)`);
    else if (owner === "instance") did.push(`kept ${title}: a running process owns it`);
    else {
      try {
        await removeTable(netns, family);
        did.push(`removed orphaned ${title}`);
      } catch (error) {
        failed.push(`${title}: ${reasonOf(error)}`);
      }
    }
  }
  return { did, failed };
}

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
async function removeTable(netns: NetNamespace, family: IpFamily): Promise<void> {
  await transactIn(netns, [deleteCommand({ family, name: TABLE_NAME })]);
}

async function transactIn(netns: NetNamespace, commands: readonly NftCommand[]): Promise<void> {
  const nft = netns.within(() => new NftSocket(netns.memory));
  try {
    await netns.transact(nft, commands);
  } finally {
    nft.close();
  }
}
