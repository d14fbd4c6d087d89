/**
 * DirectorySettings: a directory with what the settings mean for the names and servers of containers. Each reload makes one.
 */
import { LIMITS } from "../../base/limits.ts";
import type { HealthPolicy } from "../../base/model/health-policy.ts";
import type { StoppedPolicy } from "../../base/model/stopped-policy.ts";
import { machineNameOf } from "../../config/etcd-values.ts";
import type { RunSettings } from "../../config/settings.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import type { SharedNames } from "../../container/names/shared-names.ts";
import type { PublicationSettings } from "../../container/publish/publication.ts";
import { Directory } from "../../container/registry/directory.ts";

export function newDirectory(settings: RunSettings, shared: SharedNames | undefined, onNames?: () => void): Directory {
  const directory = new Directory({
    serversMax: serversMax(settings),
    ownAddress: DOCKER_RESOLVER,
    shared,
    ...(onNames !== undefined && { onNames }),
  });
  directory.setRules(settings.routes);
  directory.setMissingContainer(settings.upstream.forward.missingContainer);
  directory.setLabelPolicy(settings.labels);
  directory.setHealth(healthOf(settings));
  directory.setStopped(stoppedOf(settings));
  directory.setChoices(settings.isStrict ? undefined : settings.names);
  directory.setHostName(settings.hostName);
  directory.setDefaultBridge(settings.defaultBridge);
  directory.setVisible(settings.visible);
  directory.setZones(settings.zones);
  directory.swarm.setSetting(settings.isStrict ? "as-docker" : "asked");
  return directory;
}

/** How containers are published, with the host name of the engine. */
export function publicationSettings(settings: RunSettings, hostName: string): PublicationSettings {
  const { publish: policy } = settings.etcd;
  const machine = (policy && machineNameOf(policy, hostName)) ?? "";
  return { policy, machine, labels: settings.labels, ttlSeconds: settings.behaviour.ttlSeconds };
}

/** Docker uses three servers of a list and ignores the others. */
function serversMax({ behaviour }: RunSettings): number {
  return behaviour.failsOver ? LIMITS.upstreamServers : LIMITS.forwardServers;
}

/** Docker ignores health checks, also where a label does not. */
function healthOf({ isStrict, health }: RunSettings): HealthPolicy | undefined {
  return isStrict ? undefined : health;
}

function stoppedOf({ isStrict, stopped }: RunSettings): StoppedPolicy | undefined {
  return isStrict ? undefined : stopped;
}
