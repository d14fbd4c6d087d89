/**
 * The state of a node after dns11 stops: its resolv.conf names the address at which Docker's resolver really answers, in whichever
 * form its rules are written and whatever KIND's entrypoint did to them. If nothing will answer, that is reported before.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { nameserversIn } from "../../../src/container/files/resolv-conf-text.ts";
import { moveDockerRulesToNftables } from "../../support/engine/docker-rules.ts";
import { type Dns11, dns11 } from "../../support/program/dns11.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  GATEWAY,
  type KindEnvironment,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { ENDS } from "../../support/kind/ends.ts";
import { waitFor } from "../../support/rig/wait.ts";

/** An answer for host.docker.internal that only dns11 gives. */
const FORCED_ANSWER = "192.0.2.77";

let world: KindEnvironment;

before(async () => (world = await startKindEnvironment({ liveRestore: true, withKeeper: true })));
after(async () => await world[Symbol.asyncDispose]());

function serversOf({ container }: KindNode): readonly string[] {
  return nameserversIn(readFileSync(`/proc/${container.pid}/root/etc/resolv.conf`, "utf8"));
}

/** KIND's entrypoint runs while dns11 serves: where it redirects to Docker's resolver, on nodes of either kind of rules. */
const REWRITES = [
  {
    where: "to the gateway, or nowhere as Docker's rules are nftables'",
    host: "deny",
    nodes: [
      { isNftables: false, redirect: GATEWAY },
      { isNftables: true, redirect: "127.0.0.11" },
    ],
  },
  {
    where: "to the address of host.docker.internal",
    host: FORCED_ANSWER,
    nodes: [{ isNftables: false, redirect: FORCED_ANSWER }],
  },
] as const;

/** The name of a node of a failed test is taken. */
let made = 0;

for (const { where, host, nodes } of REWRITES) {
  for (const [how, end] of Object.entries(ENDS)) {
    test(`KIND's entrypoint moves Docker's resolver ${where}; after ${how} resolv.conf names that address`, async () => {
      const rewritten = await Promise.all(
        nodes.map(async (each, index) => ({ ...each, node: await world.node(`rewritten-${(made += 1)}-${index}`) })),
      );
      await using instance = await world.serveWith(world.settings(`host-docker-internal: ${host}`));
      for (const { node, isNftables } of rewritten) {
        await waitForWorkingNode(instance, node.name);
        if (isNftables) await moveDockerRulesToNftables(node.netnsPath);
        await node.rewrite();
        assert.deepEqual(serversOf(node), [GATEWAY]);
      }
      await end(instance, world);
      for (const { node, redirect } of rewritten) {
        assert.deepEqual(serversOf(node), [redirect]);
        assert.deepEqual(await world.webFrom(node, redirect), world.found);
        await node[Symbol.asyncDispose]();
      }
    });
  }
}

async function restartEngine(instance: Dns11): Promise<void> {
  await world.engine.stopDaemon();
  await world.engine.startDaemon();
  await waitFor("the connection to the engine", async () =>
    (await instance.status()).engine?.isConnected ? true : undefined,
  );
}

async function doctor(node: KindNode): Promise<{ readonly state: string; readonly detail: string } | undefined> {
  const { stdout } = await dns11(["kind", "doctor", "-H", world.engine.host, "--json", node.name]);
  const [report] = JSON.parse(stdout) as { findings: { code: string; state: string; detail: string }[] }[];
  return report?.findings.find(({ code }) => code === "kind-docker");
}

test("after a restart of dockerd KIND's rules redirect to a closed port: status, doctor and the log at the end report it", async () => {
  await using node = await world.node("bereft", { entrypoint: "kind" });
  await node.waitForEntrypoint();
  await using instance = await world.serve();
  assert.deepEqual((await waitForWorkingNode(instance, node.name)).warnings, []);
  assert.equal((await doctor(node))?.state, "ok");
  await restartEngine(instance);
  const report = await waitForNode(instance, node.name, ({ warnings }) => warnings.length > 0);
  assert.match(report.warnings.join(), /10\.77\.0\.1.* nothing listens.*docker restart bereft/);
  assert.equal(report.state, "working", "pods are answered while dns11 runs");
  const found = await doctor(node);
  assert.equal(found?.state, "warning");
  assert.match(found?.detail ?? "", /10\.77\.0\.1.* nothing listens/);
  assert.doesNotMatch(instance.log, /nothing listens/);
  assert.equal(await instance.stop(), 0);
  await instance.logs(/"level":"warn".*10\.77\.0\.1.* nothing listens.*docker restart bereft/);
  assert.deepEqual((await world.webFrom(node, GATEWAY)).flat(), [], "the warning was right");
  assert.equal((await doctor(node))?.state, "problem");
  await node.restart();
  await node.waitForEntrypoint();
  assert.deepEqual(await world.webFrom(node, GATEWAY), world.found, "and the remedy works");
});

test("an unreachable resolver of Docker is reported", async () => {
  await using node = await world.node("orphan");
  await using instance = await world.serve();
  await waitForWorkingNode(instance, node.name);
  await moveDockerRulesToNftables(node.netnsPath, { udp: 9, tcp: 9 });
  const report = await waitForNode(instance, node.name, ({ warnings }) => warnings.length > 0);
  assert.match(report.warnings.join(), /Docker's resolver is unreachable: .*127\.0\.0\.11.* nothing listens/);
  assert.equal(await instance.stop(), 0);
  await instance.logs(/"level":"warn".*Docker's resolver is unreachable/);
});
