/**
 * LeftChanges: containers in which features changed something, that a killed instance left changed.
 */
import { NOTHING_TO_RESTORE, restoreContainer } from "../../container/files/restore.ts";
import type { ContainerSideParts } from "../container-side.ts";
import type { EngineAccess } from "./engine-link.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { Follower } from "../../container/watch/follower.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { Running } from "../../features/contract.ts";

/** Those in which nothing is to be changed any more. A restarted container needs no undoing. */
export async function restoreLeft(
  {
    directory,
    features,
    follower,
  }: {
    readonly directory: Directory;
    readonly features: readonly Pick<Running, "changesFiles">[];
    readonly follower: Pick<Follower, "unknown">;
  },
  { host }: Pick<EngineAccess, "host">,
  { platform, journal }: Pick<ContainerSideParts, "platform" | "journal">,
): Promise<object[]> {
  const restored: object[] = [];
  for (const record of journal.all().records) {
    // It may run: what was changed in it could not be undone without its record.
    if (follower.unknown.has(record.containerId)) continue;
    const fact = directory.containers.get(record.containerId);
    const isRunning = fact?.startedAt === record.startedAt;
    if (isRunning && isChangedBy(features, fact)) continue;
    const { did, isComplete } = isRunning
      ? await restoreContainer(record, { ...platform, host: host() })
      : NOTHING_TO_RESTORE;
    if (isComplete) journal.remove(record.containerId);
    if (did.length > 0) restored.push({ node: record.name, did });
  }
  return restored;
}

/** Whether a feature changes files of this container. */
export function isChangedBy(features: readonly Pick<Running, "changesFiles">[], fact: ContainerFact): boolean {
  return features.some((each) => each.changesFiles?.(fact) === true);
}
