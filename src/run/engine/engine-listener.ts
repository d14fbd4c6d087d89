/**
 * EngineListener: the listener on the host, with what it needs of the containers of an engine: their links there, and what each sees.
 */
import { eventLogger } from "../../base/log/event-logger.ts";
import type { View } from "../../base/model/view.ts";
import type { HostNames } from "../../container/host/host-names.ts";
import type { BuildSteps } from "../../container/builds/build-steps.ts";
import type { ContainerLinks } from "../../container/links/container-links.ts";
import type { Asker } from "../../container/listener/asker.ts";
import { Listener } from "../../container/listener/listener.ts";
import type { AskingContainers } from "../../container/listener/shared-endpoint.ts";
import { dialIn } from "../../container/namespace/dial.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import { BUILDS_ID } from "../../container/facts/fact.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { Roster } from "../../container/roster.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { ContainerSideParts } from "../container-side.ts";
import type { EngineAccess } from "./engine-link.ts";

/** The parts of an EngineSide; the directory is the current one. */
interface Side {
  readonly directory: Directory;
  readonly roster: Roster;
  readonly hostNames: HostNames;
  readonly links: ContainerLinks;
  readonly builds: BuildSteps;
}

export function openListenerOf(side: Side, parts: ContainerSideParts, { host }: EngineAccess): Listener {
  const { settings, platform, querySide, hold: keep, inherit, startAfter, log } = parts;
  const listener = new Listener(settings.hasListener, {
    ...platform,
    ...{ host, keep, inherit, startAfter },
    openEndpoint: querySide.openSharedEndpoint,
    containers: askingContainers(side, parts, host),
    followLinks: async () => {
      await side.links.start(side.directory.containers.values());
      await side.links.settled();
    },
    askers: () => askersOn(side),
    links: () => linksOn(side),
    onEvent: eventLogger(log),
    onState: () => {
      side.roster.refresh();
      listener.update(BUILDS_ID);
    },
  });
  side.links.onChange(() => listener.refresh());
  return listener;
}

/** A packet from a link-local address is for the network that it is on, and the listener is on none. */
function* askersOn({ links, builds }: Side): Generator<Asker> {
  yield* builds.askers();
  for (const { containerId, index: link, addresses } of links.all()) {
    for (const address of addresses) if (!address.startsWith("fe80:")) yield { containerId, link, address };
  }
}

function* linksOn({ links, builds }: Side): Generator<number> {
  yield* builds.indexes();
  for (const { index } of links.all()) yield index;
}

function askingContainers(
  side: Side,
  { platform: { runner }, quarantines }: ContainerSideParts,
  host: EngineAccess["host"],
): AskingContainers {
  return {
    viewOf: (containerId) => viewOf(side, containerId, quarantines.reasonFor),
    isLasting: (containerId) => containerId === BUILDS_ID && side.builds.isOn,
    dial: (containerId, server, type) => {
      // A step has no server of its own.
      if (server.from === "host" || containerId === BUILDS_ID)
        return dialIn(runner, host().network, server, type, side.hostNames.isOn);
      const fact = side.directory.containers.get(containerId);
      if (fact === undefined) throw new Fault("ENDED", "The container is gone");
      const { fd } = proveNamespace({ containerId, ...fact }, host(), runner.homeId);
      try {
        return dialIn(runner, fd, server, type, true);
      } finally {
        closeQuietly(fd);
      }
    },
  };
}

/**
 * Whoever asks gets answers, also a container that dns11 does not serve in its namespace: it has no other resolver here. But for one
 * whose queries crash the process, and one about which nothing is decided yet.
 */
function viewOf(
  { directory, roster, builds }: Side,
  containerId: string,
  quarantineOf: (containerId: string) => string | undefined,
): View | undefined {
  if (containerId === BUILDS_ID) {
    const isAnswered = builds.isOn && quarantineOf(BUILDS_ID) === undefined;
    return isAnswered ? directory.viewOf(builds.fact) : undefined;
  }
  const fact = directory.containers.get(containerId);
  const decision = roster.decisionOf(containerId);
  if (fact === undefined || decision === undefined) return undefined;
  return decision.kind === "skip" && decision.code === "quarantined" ? undefined : roster.viewOf(fact);
}
