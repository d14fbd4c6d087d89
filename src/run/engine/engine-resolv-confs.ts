/**
 * EngineResolvConfs: what reads and writes resolv.conf files in containers of an engine: KIND nodes, and containers on the default
 * bridge.
 */
import { eventLogger } from "../../base/log/event-logger.ts";
import type { Reconciler } from "../../container/attach/reconciler.ts";
import { Bridges } from "../../container/bridge/bridges.ts";
import { Nodes } from "../../container/kind/nodes.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { Follower } from "../../container/watch/follower.ts";
import type { ContainerSideParts } from "../container-side.ts";
import type { EngineAccess } from "./engine-link.ts";

/** The parts of an EngineSide; the directory is the current one. */
interface Side {
  readonly directory: Directory;
  readonly follower: Follower;
  readonly reconciler: Reconciler;
}

interface EngineResolvConfs {
  readonly nodes: Nodes;
  readonly bridges: Bridges;
}

export function openResolvConfs(side: Side, parts: ContainerSideParts, { host }: EngineAccess): EngineResolvConfs {
  const { platform, journal, settings } = parts;
  const reinspect = (id: string): void => side.follower.reinspect([id]);
  const onChange = (id: string): void => side.reconciler.updateCapture(id);
  const onEvent = eventLogger(parts.log);
  return {
    nodes: new Nodes(
      { ...platform, journal, host, networkOf: (id) => side.directory.network(id), onChange, onEvent },
      settings,
    ),
    bridges: new Bridges({ host, onChange, onFileChange: reinspect }),
  };
}
