// The rules that redirect a container's queries to one of the name servers: those that dns11 installs where its process
// answers, so that a comparison is one of servers. They have priority over Docker's.

import { closeSync, openSync } from "node:fs";

import { CONTAINER_CAPTURE } from "../../src/container/capture/capture.ts";
import { randomMark } from "../../src/container/namespace/passages.ts";
import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { RuleSet } from "../../src/container/rules/rule-set.ts";
import { TABLE_NAME, servingPlan } from "../../src/container/rules/plan.ts";
import { TRIAL_MARK } from "../../src/container/rules/probe.ts";
import { zoneAllocator } from "../../src/container/rules/owned-tables.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { stdoutOf } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";

export const RESOLVER = "127.0.0.11";

const nextZone = zoneAllocator();

// Redirects to this port of the resolver's address, or removes the redirect.
export async function redirectTo(client: Container, port: number | undefined): Promise<void> {
  const removal = [`add table ip ${TABLE_NAME}`, `delete table ip ${TABLE_NAME}`];
  stdoutOf(await client.enter("nft", ["-f", "-"], { input: `${removal.join("\n")}\n` }), "nft");
  if (port !== undefined) await installRules(client, port);
  // Flush conntrack: a socket that reuses a source port would still reach the previous server.
  stdoutOf(await client.enter("conntrack", ["--flush"]), "conntrack");
}

async function installRules({ netnsPath }: Container, port: number): Promise<void> {
  const runner = new NamespaceRunner();
  const fd = openSync(netnsPath, "r");
  try {
    // No process owns them, so they stay.
    const rules = new RuleSet("nft", runner.namespaceOf(fd, new NetlinkMemory()));
    const plans = servingPlan({
      capture: CONTAINER_CAPTURE,
      listening: [{ address: RESOLVER, udpPort: port, tcpPort: port }],
      zone: nextZone(),
      sparedPorts: [],
      passthroughMark: randomMark(),
      trialMark: TRIAL_MARK,
    });
    await rules.install(plans, []);
    rules.close();
  } finally {
    closeSync(fd);
    runner.close();
  }
}
