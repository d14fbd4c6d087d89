/**
 * NodeInstance: what a run inside a KIND node shares with `--once`.
 */
import { IN_NODE_FILES, readInNodeFact } from "../../container/kind/in-node.ts";
import type { Journal } from "../../container/kind/journal.ts";
import { NodeMode } from "../../container/kind/node-mode.ts";
import { NodeResolvConf } from "../../container/kind/node-resolv-conf.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import type { Log } from "../../base/log/log.ts";
import { eventLogger } from "../../base/log/event-logger.ts";

/** Used instead of an engine's id. */
export const NODE_INSTANCE_ID = "node";
export const THREAD_NAMESPACE = "/proc/thread-self/ns/net";

interface ModeParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly log: Log;
  readonly journal: Journal;
}

export function openNodeMode(policy: KindPolicy, { log, ...parts }: ModeParts, onChange: () => void): NodeMode {
  return new NodeMode(readInNodeFact(parts.memory), policy, {
    ...parts,
    resolvConf: new NodeResolvConf(IN_NODE_FILES),
    onChange,
    onEvent: eventLogger(log),
  });
}
