/**
 * DirectorySettings: what the settings mean for names and upstream servers. In strict mode no choice that Docker does not have
 * counts, whatever the settings or a label say.
 */
import { LIMITS } from "../../base/limits.ts";
import type { RunSettings } from "../../config/settings.ts";
import type { Directory } from "../../container/registry/directory.ts";

/** Existing views do not change. */
export function configureDirectory(directory: Directory, settings: RunSettings): void {
  const { isStrict } = settings;
  directory.setRules(settings.routes);
  directory.setMissingContainer(settings.upstream.forward.missingContainer);
  directory.setLabelPolicy(settings.labels);
  directory.setHealth(isStrict ? undefined : settings.health);
  directory.setStopped(isStrict ? undefined : settings.stopped);
  directory.setChoices(isStrict ? undefined : settings.names);
  directory.setServersMax(serversMax(settings));
  directory.setHostName(settings.hostName);
  directory.setDefaultBridge(settings.defaultBridge);
  directory.setVisible(settings.visible);
}

/** Docker uses three servers of a list and ignores the others. */
export function serversMax({ behaviour }: RunSettings): number {
  return behaviour.failsOver ? LIMITS.upstreamServers : LIMITS.forwardServers;
}
