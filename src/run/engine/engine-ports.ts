/**
 * EnginePorts: what the control socket can read and do about an engine's containers.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { RepairReport } from "../../api/status.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Reconciler } from "../../container/attach/reconciler.ts";
import type { BuildSteps } from "../../container/builds/build-steps.ts";
import { BUILDS_DECISION } from "../../container/builds/builds-fact.ts";
import { BUILDS_ID } from "../../container/facts/fact.ts";
import { HOST_FACT, HOST_ID } from "../../container/host/host-fact.ts";
import type { HostNames } from "../../container/host/host-names.ts";
import type { Nodes } from "../../container/kind/nodes.ts";
import { openHostNetwork, readEngineFile, tryReadContainerFile } from "../../container/namespace/engine-host.ts";
import { libcOf } from "../../container/namespace/container-libc.ts";
import { withOwnFiles } from "../../container/namespace/own-files.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { Roster } from "../../container/roster.ts";
import { listedServers } from "../../container/watch/host-file.ts";
import { USUAL_ORDER, lookupOrder } from "../../container/watch/nsswitch.ts";
import { parseResolvConf } from "../../container/watch/resolv-conf.ts";
import type { Containers, ContainerAccess, Repairs } from "../../control/situation/ports.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { isListenId } from "../../base/model/listen-policy.ts";
import type { ContainerSideParts } from "../container-side.ts";
import type { Platform } from "../platform.ts";
import { openNamespace } from "../open-namespace.ts";
import { SwarmPlaces } from "../../container/names/swarm/swarm-places.ts";
import type { Quarantines } from "../quarantine/quarantines.ts";
import type { EngineAccess } from "./engine-link.ts";
import type { EngineLan } from "./engine-lan.ts";
import type { EngineNetworks } from "./engine-networks.ts";
import type { StoppedContainers } from "./stopped-containers.ts";

interface EnginePortsParts {
  /** The current one. */
  readonly directory: Directory;
  readonly builds: Pick<BuildSteps, "isOn" | "fact">;
  readonly hostNames: HostNames;
  readonly lan: EngineLan;
  readonly nodes: Nodes;
  readonly reconciler: Reconciler;
  readonly roster: Roster;
  readonly stopped: StoppedContainers;
  readonly networks: EngineNetworks;
}

const POLL_MS = 10;
const NSSWITCH = "/etc/nsswitch.conf";
const NSSWITCH_BYTES_MAX = 64 * 1024;

export function containersOf(
  parts: EnginePortsParts,
  { querySide, publishedOf = () => undefined }: Pick<ContainerSideParts, "querySide" | "publishedOf">,
): Containers {
  const { builds, hostNames, networks, nodes, reconciler, roster, stopped } = parts;
  return {
    get facts() {
      const { containers } = parts.directory;
      const others = [
        ...(hostNames.isOn ? [HOST_FACT] : []),
        ...(builds.isOn ? [builds.fact] : []),
        ...parts.lan.facts,
      ];
      return others.length === 0
        ? containers
        : new Map([...containers, ...others.map((each) => [each.id, each] as const)]);
    },
    decisionOf: (id) => {
      if (id === BUILDS_ID) return builds.isOn ? BUILDS_DECISION : undefined;
      return id === HOST_ID ? hostNames.decision : (parts.lan.decisionOf(id) ?? roster.decisionOf(id));
    },
    attachmentOf: (id) => reconciler.attachmentOf(id),
    clients: querySide.clients,
    viewOf: (fact) => (fact === HOST_FACT ? hostNames.view : (parts.lan.viewOf(fact.id) ?? roster.viewOf(fact))),
    defaultBridge: () => roster.defaultBridge,
    nodeReportOf: (fact) =>
      fact !== HOST_FACT && nodes.isNode(fact) ? nodes.currentMode(fact.id)?.report() : undefined,
    formerAddresses: () => parts.directory.former.list(),
    stopped: async () => await stopped.list(),
    networks: async () => await networks.list(),
    get swarm() {
      return new SwarmPlaces(parts.directory.names.swarm);
    },
    publishedOf,
  };
}

export function repairsOf({ nodes, reconciler, roster }: EnginePortsParts, quarantines: Quarantines): Repairs {
  return {
    repair: async (id) => {
      if (quarantines.release(id)) return await attachAfterRelease({ reconciler, roster }, id);
      return (await reconciler.repair(id)) ?? "not-served";
    },
    setDetached: (fact, isDetached) => {
      if (!nodes.isNode(fact))
        throw new Fault("NO_SUCH_NODE", `"${fact.name}" is not a KIND node served by this dns11`, {
          remedy: "dns11 kind status lists the nodes.",
        });
      roster.setDetached(fact, isDetached);
    },
  };
}

/** The container is wanted again; the worker attaches it in its turn. */
async function attachAfterRelease(
  { reconciler, roster }: Pick<EnginePortsParts, "reconciler" | "roster">,
  id: string,
): Promise<RepairReport["outcome"]> {
  roster.refresh();
  for (const endMs = performance.now() + LIMITS.repairMs; performance.now() < endMs; await sleep(POLL_MS)) {
    const outcome = await reconciler.repair(id);
    if (outcome !== undefined) return outcome === "failed" ? "failed" : "released";
  }
  return "failed";
}

export function insideOf(
  { host }: Pick<EngineAccess, "host">,
  { runner }: Pick<Platform, "runner">,
  hostServers: NonNullable<ContainerAccess["hostServers"]> = () => listedServers(host(), undefined),
): ContainerAccess {
  return {
    hostServers,
    hostsOf: (fact) => {
      const file = tryReadContainerFile(host(), fact.hostsPath ?? "", fact.id);
      return file.kind === "read" ? file.text : undefined;
    },
    lookupOrderOf: ({ id, pid }) => {
      try {
        return withOwnFiles(pid, id, host(), (read) => {
          const text = read(NSSWITCH, NSSWITCH_BYTES_MAX)?.toString("utf8");
          const order = lookupOrder(text, undefined);
          // The library decides where the file is missing, or says something else than usual.
          return text !== undefined && order === USUAL_ORDER ? order : lookupOrder(text, libcOf(read));
        });
      } catch {
        // Of a file that cannot be read nothing is said.
        return USUAL_ORDER;
      }
    },
    open: (fact) => {
      if (fact === HOST_FACT) return openNamespace(runner, openHostNetwork(host()));
      if (isListenId(fact.id)) throw otherMachine(fact.name);
      try {
        return openNamespace(runner, proveNamespace({ containerId: fact.id, ...fact }, host(), runner.homeId).fd);
      } catch (error) {
        if (codeOf(error) !== "NAMESPACE_IS_HOST") throw error;
        throw new Fault(
          "NAMESPACE_IS_HOST",
          `"${fact.name}" uses the host's network: query from the host itself, for example with dig`,
        );
      }
    },
    resolvConfOf: (fact) => {
      if (isListenId(fact.id)) return undefined;
      if (fact === HOST_FACT) return parseResolvConf(readEngineFile(host(), "/etc/resolv.conf") ?? "");
      const { id, resolvConfPath: path } = fact;
      const file = tryReadContainerFile(host(), path ?? "", id);
      return file.kind === "read" ? parseResolvConf(file.text) : undefined;
    },
  };
}

function otherMachine(name: string): Fault {
  return new Fault("NAMESPACE_ELSEWHERE", `"${name}" stands for other machines, from which dns11 cannot query`, {
    remedy: "Query from one of them, for example with dig, or use dns11 explain.",
  });
}
