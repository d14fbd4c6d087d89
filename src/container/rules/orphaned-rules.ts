/**
 * OrphanedRules: removes our rules that no running process owns from a namespace.
 */
import { LIMITS } from "../../base/limits.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { removeInstalledRules } from "./permanent-rules.ts";
import { installedRules } from "./installed-rules.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { IpFamily } from "./plan.ts";

export interface CleanupResult {
  /** One line for each action. */
  readonly did: readonly string[];
  /** One line for each failure. While there are any, the records of what to clean up are kept. */
  readonly failed: readonly string[];
}

export async function removeOrphanedRules(netns: NetNamespace): Promise<CleanupResult> {
  const did: string[] = [];
  const failed: string[] = [];
  const onUnread = (family: IpFamily): void =>
    void failed.push(`tables of ${family}tables-legacy: another program holds their lock`);
  for (const rules of await installedRules(netns, LIMITS.xtablesCleanupMs, onUnread)) {
    const { title, owner } = rules;
    if (owner === "permanent")
      did.push(`kept ${title}: installed permanently from inside the node (dns11 run --in-node --once)`);
    else if (owner === "instance") did.push(`kept ${title}: a running process owns it`);
    else {
      try {
        await removeInstalledRules(netns, rules);
        did.push(`removed orphaned ${title}`);
      } catch (error) {
        failed.push(`${title}: ${reasonOf(error)}`);
      }
    }
  }
  return { did, failed };
}
