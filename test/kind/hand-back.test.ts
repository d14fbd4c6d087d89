/**
 * What a node is left with when we go: its resolv.conf names Docker's resolver where that really answers, however its
 * rules are written and whatever KIND's entrypoint made of them; and where nobody will answer, somebody is told before.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { nameserversIn } from "../../src/container/kind/resolv-conf-text.ts";
import { moveDockerRulesToNftables } from "../support/engine/docker-rules.ts";
import { type Dns11, dns11 } from "../support/program/dns11.ts";
import type { KindNode } from "../support/kind/kind-node.ts";
import {
  GATEWAY,
  type KindWorld,
  startKindWorld,
  waitForNode,
  waitForWorkingNode,
} from "../support/kind/kind-world.ts";
import { waitFor } from "../support/rig/wait.ts";

/** What only dns11 answers for host.docker.internal. */
const TOLD = "192.0.2.77";

let world: KindWorld;

before(async () => (world = await startKindWorld({ liveRestore: true })));
after(async () => await world[Symbol.asyncDispose]());

function serversOf({ container }: KindNode): readonly string[] {
  return nameserversIn(readFileSync(`/proc/${container.pid}/root/etc/resolv.conf`, "utf8"));
}

const ENDS: Readonly<Record<string, (instance: Dns11) => Promise<void>>> = {
  SIGTERM: async (instance) => {
    assert.equal(await instance.stop(), 0);
  },
  "SIGKILL and `dns11 cleanup`": async (instance) => {
    instance.kill("SIGKILL");
    await instance.exited;
    const { code, stderr } = await dns11(["cleanup", "-H", world.engine.host, "--state-dir", instance.stateDir]);
    assert.equal(code, 0, stderr);
  },
};

/** Of KIND's entrypoint that runs while we serve: where it leads Docker's resolver. */
const REWRITES: Readonly<
  Record<string, { readonly host: string; readonly isNftables: boolean; readonly led: string }>
> = {
  "to the gateway": { host: "deny", isNftables: false, led: GATEWAY },
  "to what we call host.docker.internal": { host: TOLD, isNftables: false, led: TOLD },
  "nowhere, as Docker's rules are nftables'": { host: "deny", isNftables: true, led: "127.0.0.11" },
};

for (const [where, { host, isNftables, led }] of Object.entries(REWRITES)) {
  for (const [how, end] of Object.entries(ENDS)) {
    test(`KIND's entrypoint leads Docker's resolver ${where}; after ${how} resolv.conf names it there`, async () => {
      await using node = await world.node("rewritten");
      await using instance = await world.serveWith(world.settings(`host-docker-internal: ${host}`));
      await waitForWorkingNode(instance, node.name);
      if (isNftables) await moveDockerRulesToNftables(node.netnsPath);
      await node.rewrite();
      assert.deepEqual(serversOf(node), [GATEWAY]);
      await end(instance);
      assert.deepEqual(serversOf(node), [led]);
      assert.deepEqual(await world.webFrom(node, led), world.found);
    });
  }
}

async function restartEngine(instance: Dns11): Promise<void> {
  await world.engine.stopDaemon();
  await world.engine.startDaemon();
  await waitFor("the engine to be followed again", async () =>
    (await instance.status()).engine?.isConnected ? true : undefined,
  );
}

async function doctor(node: KindNode): Promise<{ readonly state: string; readonly detail: string } | undefined> {
  const { stdout } = await dns11(["kind", "doctor", "-H", world.engine.host, "--json", node.name]);
  const [report] = JSON.parse(stdout) as { findings: { code: string; state: string; detail: string }[] }[];
  return report?.findings.find(({ code }) => code === "kind-docker");
}

test("after a restart of dockerd the rules that KIND made lead to nobody: status, doctor and the end say so", async () => {
  await using node = await world.node("bereft", { entrypoint: "kind" });
  await node.waitForEntrypoint();
  await using instance = await world.serve();
  assert.deepEqual((await waitForWorkingNode(instance, node.name)).warnings, []);
  assert.equal((await doctor(node))?.state, "ok");
  await restartEngine(instance);
  const report = await waitForNode(instance, node.name, ({ warnings }) => warnings.length > 0);
  assert.match(report.warnings.join(), /10\.77\.0\.1.* nobody listens.*docker restart bereft/);
  assert.equal(report.state, "working", "pods are answered as long as we are there");
  const found = await doctor(node);
  assert.equal(found?.state, "warning");
  assert.match(found?.detail ?? "", /10\.77\.0\.1.* nobody listens/);
  assert.doesNotMatch(instance.log, /nobody listens/);
  assert.equal(await instance.stop(), 0);
  assert.match(instance.log, /"level":"warn".*10\.77\.0\.1.* nobody listens.*docker restart bereft/);
  assert.deepEqual((await world.webFrom(node, GATEWAY)).flat(), [], "it was said rightly");
  assert.equal((await doctor(node))?.state, "problem");
  await node.restart();
  await node.waitForEntrypoint();
  assert.deepEqual(await world.webFrom(node, GATEWAY), world.found, "and what was offered helps");
});

test("where no resolver of Docker's is left at all, that is said, too", async () => {
  await using node = await world.node("orphan");
  await using instance = await world.serve();
  await waitForWorkingNode(instance, node.name);
  await moveDockerRulesToNftables(node.netnsPath, { udp: 9, tcp: 9 });
  const report = await waitForNode(instance, node.name, ({ warnings }) => warnings.length > 0);
  assert.match(report.warnings.join(), /Docker's resolver is gone: .*127\.0\.0\.11.* nobody listens/);
  assert.equal(await instance.stop(), 0);
  assert.match(instance.log, /"level":"warn".*Docker's resolver is gone/);
});
