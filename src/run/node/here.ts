/**
 * Here: what a run inside a KIND node and the one that makes rules and goes have in common.
 */
import { FILES_HERE, nodeHere } from "../../container/kind/here.ts";
import type { Journal } from "../../container/kind/journal.ts";
import { NodeMode } from "../../container/kind/node-mode.ts";
import { NodeResolver } from "../../container/kind/node-resolver.ts";
import type { Bracket } from "../../container/namespace/bracket.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import type { Log } from "../../base/log/log.ts";
import { eventLogger } from "../../base/log/event-logger.ts";

/** In the place of an engine's id. */
export const INSTANCE = "node";
export const THREAD_NAMESPACE = "/proc/thread-self/ns/net";

interface ModeParts {
  readonly bracket: Bracket;
  readonly memory: NetlinkMemory;
  readonly log: Log;
  readonly journal: Journal;
}

export function modeHere(policy: KindPolicy, { log, ...parts }: ModeParts, onChange: () => void): NodeMode {
  return new NodeMode(nodeHere(parts.memory), policy, {
    ...parts,
    resolver: new NodeResolver(FILES_HERE),
    onChange,
    onNews: eventLogger(log),
  });
}
