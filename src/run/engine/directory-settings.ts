/**
 * DirectorySettings: what the settings mean for the names and servers of containers, at the start and at each reload.
 */
import { LIMITS } from "../../base/limits.ts";
import type { HealthPolicy } from "../../base/model/health-policy.ts";
import type { StoppedPolicy } from "../../base/model/stopped-policy.ts";
import type { RunSettings } from "../../config/settings.ts";
import type { Directory } from "../../container/registry/directory.ts";

export function configureDirectory(directory: Directory, settings: RunSettings): void {
  directory.configure(() => {
    directory.setRules(settings.routes);
    directory.setMissingContainer(settings.upstream.forward.missingContainer);
    directory.setLabelPolicy(settings.labels);
    directory.setHealth(healthOf(settings));
    directory.setStopped(stoppedOf(settings));
    directory.setChoices(settings.isStrict ? undefined : settings.names);
    directory.setServersMax(serversMax(settings));
    directory.setHostName(settings.hostName);
    directory.setDefaultBridge(settings.defaultBridge);
    directory.setVisible(settings.visible);
    directory.setZones(settings.zones);
    directory.swarm.setSetting(settings.isStrict ? "as-docker" : "asked");
  });
}

/** Docker uses three servers of a list and ignores the others. */
export function serversMax({ behaviour }: RunSettings): number {
  return behaviour.failsOver ? LIMITS.upstreamServers : LIMITS.forwardServers;
}

/** Docker ignores health checks, also where a label does not. */
function healthOf({ isStrict, health }: RunSettings): HealthPolicy | undefined {
  return isStrict ? undefined : health;
}

function stoppedOf({ isStrict, stopped }: RunSettings): StoppedPolicy | undefined {
  return isStrict ? undefined : stopped;
}
