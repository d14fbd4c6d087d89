/**
 * KIND nodes with the rule backend nft: as with nft-owner, pods are served and cannot reach our ports
 * directly, and no rules are left after dns11 stops, or after a cleanup following a kill.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dns11 } from "../../support/program/dns11.ts";
import {
  GATEWAY,
  type KindEnvironment,
  savedRules,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { inTime } from "../../support/rig/wait.ts";

const OURS = /dns11/;

let world: KindEnvironment;

before(async () => (world = await startKindEnvironment()));
after(async () => await world[Symbol.asyncDispose]());

async function rules(netnsPath: string): Promise<string> {
  return await checkIn(netnsPath, "nft", ["list", "ruleset"]);
}

/** A table that was used once stays listed, empty, for the life of the namespace. */
function ruleLines(saved: string): string[] {
  return saved.split("\n").filter((line) => line.startsWith("-A"));
}

for (const mode of ["listener", "loopback"] as const) {
  test(`${mode}: pods resolve names, and cannot reach our ports directly`, async () => {
    await using node = await world.node(mode);
    await using pod = await startPod(node);
    const others = ruleLines(await savedRules(node.netnsPath));
    await using instance = await world.serve({ "rule-backend": "nft", "kind.mode": mode });
    const report = await waitForWorkingNode(instance, node.name);
    assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
    for (const server of [GATEWAY, "127.0.0.11"]) assert.deepEqual(await world.webFrom(node, server), world.found);
    const target = report.target[0] ?? "";
    const ss = await checkIn(node.netnsPath, "ss", ["-Hlnu"]);
    const port = new RegExp(`\\s${target.replaceAll(".", "\\.")}:(\\d+)\\s`).exec(ss)?.[1] ?? "";
    if (mode === "listener") {
      await pod.enter("dig", [`@${target}`, "-p", port, "web", "+tries=1", "+time=1"]);
      await waitForNode(instance, node.name, ({ dropped }) => dropped > 0);
    }
    assert.equal(await instance.stop(), 0);
    assert.doesNotMatch(await rules(node.netnsPath), OURS);
    assert.deepEqual(ruleLines(await savedRules(node.netnsPath)), others);
    assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
  });
}

test("dns11 cleanup restores a node after SIGKILL", async () => {
  await using node = await world.node("killed");
  await using instance = await world.serve({ "rule-backend": "nft" });
  await waitForWorkingNode(instance, node.name);
  instance.kill("SIGKILL");
  await inTime(instance.exited, "the end of dns11");
  assert.match(await rules(node.netnsPath), OURS);
  const { code, stderr } = await dns11(["cleanup", "-H", world.engine.host, "--state-dir", instance.stateDir]);
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(await rules(node.netnsPath), OURS);
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
});
