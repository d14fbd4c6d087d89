// The mode of a KIND node that is a network namespace and a folder, without an engine.

import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";

import type { KindPolicy } from "../../../src/features/kind/feature.ts";
import { Journal } from "../../../src/container/files/journal.ts";
import { NodeMode } from "../../../src/features/kind/node-mode.ts";
import { WrittenResolvConf } from "../../../src/container/files/written-resolv-conf.ts";
import type { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";

export const NODE_ADDRESS = "10.6.0.2";

interface NodeModeParts {
  // With the node's resolv.conf, and for its journal.
  readonly folder: string;
  readonly policy: KindPolicy;
  readonly runner: NamespaceRunner;
}

export function nodeModeIn({ folder, policy, runner }: NodeModeParts): NodeMode {
  const path = join(folder, "resolv.conf");
  mkdirSync(join(folder, "nodes"), { recursive: true });
  const open = (flags: number): number => openSync(path, flags);
  const openOriginal = (): never => {
    throw new Error("no entrypoint was here");
  };
  const fact = {
    containerId: "abc",
    name: "node",
    startedAt: "now",
    sandboxKey: "",
    pid: process.pid,
    resolvConfPath: path,
    search: undefined,
    gateway: { ipv4: "10.6.0.1", ipv6: undefined },
    own: { ipv4: NODE_ADDRESS, ipv6: undefined },
    addresses: [NODE_ADDRESS],
    joins: ["endpoint-1"],
    hostGateway: undefined,
  };
  return new NodeMode(fact, policy, {
    runner,
    memory: new NetlinkMemory(),
    journal: new Journal(folder),
    resolvConf: new WrittenResolvConf({
      path,
      openWritten: open,
      openRead: open,
      openOriginal,
      isContainerFile: () => true,
    }),
    onChange: () => undefined,
    onEvent: () => undefined,
  });
}
