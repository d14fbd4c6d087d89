/** Process that opens a pod of a node and then waits, for the test of what is left when it is killed. */
import { openSync } from "node:fs";

import { openPodNamespace } from "../../../src/features/kind/pod-namespace.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";

const node = openSync(process.argv[2] ?? "", "r");
const pod = await openPodNamespace(new NamespaceRunner(), new NetlinkMemory(), node);
process.stdout.write(`${JSON.stringify(pod.addresses)}\n`);
process.stdin.resume();
