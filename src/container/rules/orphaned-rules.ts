/**
 * LeftBehind: rules of ours in a namespace that nobody holds any more, and their removal, told line by line.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { removeInstalledRules } from "./permanent-rules.ts";
import { installedRules } from "./installed-rules.ts";

export interface CleanupResult {
  /** What was done, a line each. */
  readonly did: readonly string[];
  /** What could not be; as long as there is such, what is known of it is kept. */
  readonly failed: readonly string[];
}

/** To be called inside the namespace; says what it did. */
export function removeOrphanedRules(memory: NetlinkMemory): CleanupResult {
  const did: string[] = [];
  const failed: string[] = [];
  for (const standing of installedRules(memory)) {
    const { title, owner: holder } = standing;
    if (holder === "stays") did.push(`${title} was made in the node, to stay; left alone`);
    else if (holder === "instance") did.push(`${title} belongs to a running process; left alone`);
    else {
      try {
        removeInstalledRules(memory, standing);
        did.push(`removed ${title}, which nobody owned`);
      } catch (error) {
        failed.push(`${title}: ${reasonOf(error)}`);
      }
    }
  }
  return { did, failed };
}
