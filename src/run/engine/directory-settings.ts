/**
 * DirectorySettings: a directory with what the settings mean for the names and servers of containers. Each reload makes one.
 */
import { LIMITS } from "../../base/limits.ts";
import { machineNameOf } from "../../config/etcd-values.ts";
import type { RunSettings } from "../../config/settings.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { NameSettings } from "../../container/names/source/name-settings.ts";
import type { SharedNames } from "../../container/names/shared-names.ts";
import type { PublicationSettings } from "../../container/publish/publication.ts";
import { Directory } from "../../container/registry/directory.ts";

/** What a directory knows from elsewhere. */
export interface DirectoryParts {
  readonly shared: SharedNames | undefined;
  readonly clusterDnsOf: (fact: ContainerFact) => string | undefined;
  readonly onNames?: () => void;
}

export function newDirectory(settings: RunSettings, { shared, clusterDnsOf, onNames }: DirectoryParts): Directory {
  return new Directory({
    serversMax: serversMax(settings),
    ownAddress: DOCKER_RESOLVER,
    names: nameSettings(settings),
    rules: settings.routes,
    missingContainer: settings.upstream.forward.missingContainer,
    shared,
    clusterDnsOf,
    ...(onNames !== undefined && { onNames }),
  });
}

/** Docker ignores health checks, and has no names of containers that do not run. */
function nameSettings(settings: RunSettings): NameSettings {
  const { isStrict, labels, visible, defaultBridge, builds, hostName, zones } = settings;
  const always = { labels, visible, defaultBridge, builds, hostName, zones };
  return isStrict
    ? { ...always, health: undefined, choices: undefined, stopped: undefined, swarm: "as-docker" }
    : { ...always, health: settings.health, choices: settings.names, stopped: settings.stopped, swarm: "asked" };
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
