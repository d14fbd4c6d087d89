/**
 * EngineHost: what the containers of an engine have to do with its host: the host's nameservers, and the names of containers there.
 */
import { eventLogger } from "../../base/log/event-logger.ts";
import type { Server } from "../../base/model/view.ts";
import type { Reconciler } from "../../container/attach/reconciler.ts";
import { HostNames } from "../../container/host/host-names.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { Roster } from "../../container/roster.ts";
import type { Follower } from "../../container/watch/follower.ts";
import { HostUpstreams } from "../../container/watch/host-upstreams.ts";
import type { ContainerSideParts } from "../container-side.ts";
import type { EngineAccess } from "./engine-link.ts";

/** The parts of an EngineSide; the directory is the current one. */
interface Side {
  readonly directory: Directory;
  readonly roster: Roster;
  readonly follower: Follower;
  readonly reconciler: Reconciler;
  readonly hostUpstreams: HostUpstreams;
  readonly hostNames: HostNames;
  readonly viewsChanged: () => void;
}

export function openHostUpstreams(side: Side, parts: ContainerSideParts, link: EngineAccess): HostUpstreams {
  const { log, querySide, settings } = parts;
  return new HostUpstreams(
    {
      onEvent: eventLogger(log),
      host: link.host,
      engineVersion: () => link.info.majorVersion,
      onChange: (servers: readonly Server[]) => {
        side.directory.setHost(servers);
        side.roster.refresh();
        querySide.onUpstreamsChanged();
        side.hostNames.refresh();
        side.viewsChanged();
      },
      reinspect: (ids: readonly string[]) => side.follower.reinspect(ids),
    },
    settings,
  );
}

export function openHostNames(
  side: Side,
  { platform, log, settings }: ContainerSideParts,
  link: EngineAccess,
): HostNames {
  return new HostNames(settings.hostNames, {
    ...platform,
    host: link.host,
    isRootless: link.info.isRootless,
    reconciler: side.reconciler,
    containers: () => side.directory.containers.values(),
    networkOf: (id) => side.directory.network(id),
    upstreams: () => side.hostUpstreams,
    sources: (zones, reach, servers) => side.directory.namesOnHost(zones, reach, servers),
    nodeRoutes: () => side.directory.nodeRoutes(),
    onEvent: eventLogger(log),
    onDenied: () => {
      side.directory.setDenied(side.hostNames.denied);
      side.directory.names.hostDomain.setDomain(side.hostNames.domain);
      side.roster.refresh();
      side.viewsChanged();
    },
  });
}
