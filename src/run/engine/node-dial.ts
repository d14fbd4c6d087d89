/**
 * NodeDial: sockets in the network namespace of a cluster's node, whose DNS servers have addresses of the cluster.
 */
import { Fault } from "../../base/lib/fault.ts";
import type { Server } from "../../base/model/view.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { dialIn } from "../../container/namespace/dial.ts";
import type { EngineHost } from "../../container/namespace/engine-host.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import { closeQuietly } from "../../kernel/libc.ts";

interface NodeDialParts {
  readonly containers: () => Iterable<ContainerFact>;
  readonly host: () => EngineHost;
  readonly runner: NamespaceRunner;
}

/** Opens a socket where the server was found, if it is still that start of the node. Throws a Fault. */
export function nodeDial({ containers, host, runner }: NodeDialParts) {
  return ({ container, ...server }: Server, type: "udp" | "tcp"): number => {
    const node = [...containers()].find(({ name }) => name === container?.name);
    if (node === undefined || node.startedAt !== container?.startedAt) throw new Fault("ENDED", "The node has ended");
    const claim = { containerId: node.id, sandboxKey: node.sandboxKey, pid: node.pid };
    const { fd } = proveNamespace(claim, host(), runner.homeId);
    try {
      return dialIn(runner, fd, server, type, true);
    } finally {
      closeQuietly(fd);
    }
  };
}
