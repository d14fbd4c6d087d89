/**
 * EngineBuilds: the steps of `docker build` at the listener on the host, with what it takes to know them: Docker's list of its default
 * bridge, and the links there.
 */
import { BuildSteps } from "../../container/builds/build-steps.ts";
import { BUILDS_ID, DEFAULT_BRIDGE } from "../../container/facts/fact.ts";
import type { ContainerLinks } from "../../container/links/container-links.ts";
import type { Listener } from "../../container/listener/listener.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { ContainerSideParts } from "../container-side.ts";
import { gatewayIn } from "./host-gateway.ts";
import type { EngineLan } from "./engine-lan.ts";
import type { EngineAccess } from "./engine-link.ts";

/** The parts of an EngineSide; the directory is the current one. */
interface Side {
  readonly directory: Directory;
  readonly links: ContainerLinks;
  readonly listener: Listener;
  readonly lan: EngineLan;
}

export function openBuilds(
  side: Side,
  { settings, platform }: ContainerSideParts,
  { engine, host }: EngineAccess,
): BuildSteps {
  const builds = new BuildSteps({
    ...platform,
    host,
    links: side.links,
    bridge: async () => {
      const json = await engine.network(DEFAULT_BRIDGE);
      return json && { json, gateway: gatewayIn(json) };
    },
    networkNamed: (name) => side.directory.networkNamed(name),
    onBridge: (fact) => side.lan.during(() => side.directory.putNetwork(fact)),
    onChange: () => {
      side.listener.refresh();
      side.listener.update(BUILDS_ID);
    },
  });
  side.links.onChange(() => builds.refresh());
  side.links.onStranger(() => builds.refresh());
  builds.configure(settings.builds);
  return builds;
}
