/**
 * OrphanedRules: removes our rules that no running process owns from a namespace.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import { removeTable } from "./permanent-rules.ts";
import { installedRules } from "./installed-rules.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";

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
