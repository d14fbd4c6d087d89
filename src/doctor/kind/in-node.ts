/**
 * In-node diagnosis: `dns11 kind doctor --in-node` checks the node that it runs in, without an engine.
 */
import { openSync } from "node:fs";

import { IN_NODE_FILES, readInNodeFact } from "../../container/kind/in-node.ts";
import { NodeResolvConf } from "../../container/kind/node-resolv-conf.ts";
import { NamespaceRunner, warmThreadPool } from "../../container/namespace/namespace-runner.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { NodeDiagnosis } from "./doctor.ts";
import { checkNode } from "./node-check.ts";

const START = "Run `dns11 run --in-node` in the node's image. If it runs, its log says why it does not serve.";

export async function diagnoseInNode(): Promise<NodeDiagnosis[]> {
  checkCapabilities();
  await warmThreadPool();
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  const fact = readInNodeFact(memory);
  const fd = openSync("/proc/thread-self/ns/net", "r");
  try {
    const resolvConf = new NodeResolvConf(IN_NODE_FILES).text();
    return [{ node: fact.name, findings: await checkNode({ fact, fd, resolvConf, start: START }, { runner, memory }) }];
  } finally {
    closeQuietly(fd);
    runner.close();
  }
}
