/**
 * route_localnet in kind mode `loopback`, with new interfaces and with another program that switches it off. dns11 restores what
 * it changed and what inherited that, leaves a user's values alone, and switches it on again.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { createNetwork } from "../../support/engine/container.ts";
import { dns11 } from "../../support/program/dns11.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  GATEWAY,
  type KindEnvironment,
  routeLocalnet,
  startKindEnvironment,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { ENDS } from "../../support/kind/ends.ts";
import { untilSame, waitFor } from "../../support/rig/wait.ts";

let world: KindEnvironment;

before(async () => {
  world = await startKindEnvironment({ withKeeper: true });
  await createNetwork(world.engine, "second");
});
after(async () => await world[Symbol.asyncDispose]());

const LOOPBACK = { "kind.mode": "loopback" };

function keyOf(device: string): string {
  return `net.ipv4.conf.${device}.route_localnet`;
}

for (const [how, end] of Object.entries(ENDS)) {
  test(`interfaces created while dns11 runs have their normal route_localnet after ${how} (K17)`, async () => {
    await using node = await world.node("growing");
    await using own = await startPod(node);
    await node.setSysctl(keyOf(own.device), 1);
    await using instance = await world.serve(LOOPBACK);
    await waitForWorkingNode(instance, node.name);
    await using born = await startPod(node);
    await using renamed = await startPod(node);
    const link = async (...args: string[]): Promise<string> => await checkIn(node.netnsPath, "ip", ["link", ...args]);
    await link("set", renamed.device, "down");
    await link("set", renamed.device, "name", "renamed0");
    await node.container.connect("second");
    await waitForWorkingNode(instance, node.name);
    assert.deepEqual(await world.webFrom(born, GATEWAY), world.found);
    await end(instance, world);
    const expected = { all: "0", default: "0", lo: "0", eth0: "0", eth1: "0", renamed0: "0" };
    // The link of a test pod goes a moment after its probe.
    await untilSame("route_localnet as before", async () => await routeLocalnet(node.netnsPath), {
      ...expected,
      [own.device]: "1",
      [born.device]: "0",
    });
  });
}

async function isOn(node: KindNode, device: string): Promise<true | undefined> {
  return (await routeLocalnet(node.netnsPath))[device] === "1" ? true : undefined;
}

test("route_localnet is switched on again and reported; a program that keeps switching it off is reported, not fought (K50)", async () => {
  await using node = await world.node("switched");
  await using first = await startPod(node);
  await using instance = await world.serve(LOOPBACK);
  await waitForWorkingNode(instance, node.name);
  // One from before dns11 started, and a later one.
  await using later = await startPod(node);
  for (const { device } of [first, later]) {
    await node.setSysctl(keyOf(device), 0);
    await waitFor(`route_localnet of ${device} to be on again`, async () => await isOn(node, device));
  }
  for (const pod of [first, later]) assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  await instance.logs(new RegExp(`"level":"warn".*\\b${first.device}\\b.*route_localnet`));
  // It would be switched on once more after a minute, in which this machine may not have come far.
  const report = await waitFor("the node to be degraded", async () => {
    await node.setSysctl(keyOf(first.device), 0);
    const { node: found } = (await instance.container(node.name)) ?? {};
    return found?.state === "degraded" ? found : undefined;
  });
  assert.match(report.reasons.join(), new RegExp(`route_localnet.*\\b${first.device}\\b.*again`));
  assert.equal(await isOn(node, first.device), undefined);
  // The interface of the doctor's own test pod has it on.
  const { code, stdout } = await dns11(["kind", "doctor", "-H", world.engine.host, "--json", node.name]);
  const [diagnosis] = JSON.parse(stdout) as { findings: { code: string; state: string; detail: string }[] }[];
  const wrong = diagnosis?.findings.filter(({ state }) => state !== "ok") ?? [];
  assert.deepEqual([code, wrong.map((each) => [each.code, each.state])], [1, [["route-localnet", "problem"]]]);
  assert.match(wrong[0]?.detail ?? "", new RegExp(`\\b${first.device}\\b`));
  assert.doesNotMatch(wrong[0]?.detail ?? "", new RegExp(`\\b(eth0|${later.device})\\b`));
  await node.setSysctl(keyOf(first.device), 1);
  await waitForWorkingNode(instance, node.name);
});

test("in kind mode listener an interface without route_localnet is not a problem", async () => {
  await using node = await world.node("indifferent");
  await using pod = await startPod(node);
  await using instance = await world.serve();
  await waitForWorkingNode(instance, node.name);
  assert.equal((await routeLocalnet(node.netnsPath))[pod.device], "0");
  const { code, stdout } = await dns11(["kind", "doctor", "-H", world.engine.host, node.name]);
  assert.equal(code, 0, stdout);
});
