/**
 * What `dns11 kind doctor` finds where there is no engine to ask: the node that we are in ourselves.
 */
import { openSync } from "node:fs";

import { FILES_HERE, nodeHere } from "../../container/kind/here.ts";
import { NodeResolver } from "../../container/kind/node-resolver.ts";
import { Bracket, warmThreadPool } from "../../container/namespace/bracket.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { NodeDiagnosis } from "./doctor.ts";
import { examineNode } from "./node-check.ts";

export async function diagnoseInNode(): Promise<NodeDiagnosis[]> {
  checkCapabilities();
  await warmThreadPool();
  const bracket = new Bracket();
  const memory = new NetlinkMemory();
  const fact = nodeHere(memory);
  const fd = openSync("/proc/thread-self/ns/net", "r");
  try {
    const resolvConf = new NodeResolver(FILES_HERE).text();
    return [{ node: fact.name, findings: await examineNode({ fact, fd, resolvConf }, { bracket, memory }) }];
  } finally {
    closeQuietly(fd);
    bracket.close();
  }
}
