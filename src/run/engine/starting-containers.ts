/**
 * StartingContainers: which containers are served before their first instruction. A policy has ways of its own to close these
 * moments, and a container in which dns11 writes a file needs its inspect first.
 */
import type { Latch } from "../../base/lib/async.ts";
import { type ContainerFact, hasOwnStack } from "../../container/facts/fact.ts";
import { SANDBOX_FOLDER, sandboxFolder } from "../../container/namespace/find-sandbox.ts";
import { SandboxBirths } from "../../container/namespace/sandbox-births.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { Running } from "../../features/contract.ts";
import type { StartingHooks } from "../../container/watch/starting-containers.ts";
import type { EngineAccess } from "./engine-link.ts";
import { isChangedBy } from "./left-changes.ts";

/** The parts of an EngineSide; the directory is the current one. */
interface Side {
  readonly directory: Directory;
  readonly features: readonly Running[];
  readonly synced: Latch;
  readonly put: (fact: ContainerFact, followers: readonly []) => void;
}

export function openBirths(side: Pick<Side, "directory">, { host }: EngineAccess): SandboxBirths {
  let folder = SANDBOX_FOLDER;
  return new SandboxBirths({
    host,
    folder: () => (folder = sandboxFolder(side.directory.containers.values(), folder)),
  });
}

export function startingHooks(side: Side, births: SandboxBirths, isPolicing: () => boolean): StartingHooks {
  return {
    births,
    isWanted: () => side.synced.isOpen && !isPolicing(),
    networkNamed: (name) => side.directory.networkNamed(name),
    onStarting: (fact) => {
      const known = side.directory.containers.get(fact.id);
      const isKnown = known !== undefined && known.isStarting !== true;
      if (isKnown || hasOwnStack(fact) || isChangedBy(side.features, fact)) return;
      // Its addresses are not known, which is all that others want of it.
      side.put(fact, []);
    },
  };
}
