/**
 * route_localnet with the way `loopback`: interfaces come while we serve, and somebody else switches it off. What we changed,
 * and what inherited from that, is put back; what a user had set is not touched; what is switched off is switched on again.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { createNetwork } from "../support/engine/container.ts";
import { type Dns11, dns11 } from "../support/program/dns11.ts";
import type { KindNode } from "../support/kind/kind-node.ts";
import {
  GATEWAY,
  type KindWorld,
  routeLocalnet,
  startKindWorld,
  waitForNode,
  waitForWorkingNode,
} from "../support/kind/kind-world.ts";
import { startPod } from "../support/kind/pod.ts";
import { checkIn } from "../support/kind/pod-host.ts";
import { waitFor } from "../support/rig/wait.ts";

let world: KindWorld;

before(async () => {
  world = await startKindWorld();
  await createNetwork(world.engine, "second");
});
after(async () => await world[Symbol.asyncDispose]());

const WAY = ["--kind-mode", "loopback"];

function keyOf(device: string): string {
  return `net.ipv4.conf.${device}.route_localnet`;
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

for (const [how, end] of Object.entries(ENDS)) {
  test(`interfaces that came while we served have route_localnet as without us after ${how} (K17)`, async () => {
    await using node = await world.node("growing");
    await using own = await startPod(node);
    await node.setSysctl(keyOf(own.device), 1);
    await using instance = await world.serve(WAY);
    await waitForWorkingNode(instance, node.name);
    await using born = await startPod(node);
    await using renamed = await startPod(node);
    const link = async (...args: string[]): Promise<string> => await checkIn(node.netnsPath, "ip", ["link", ...args]);
    await link("set", renamed.device, "down");
    await link("set", renamed.device, "name", "renamed0");
    await node.container.connect("second");
    await waitForWorkingNode(instance, node.name);
    assert.deepEqual(await world.webFrom(born, GATEWAY), world.found);
    await end(instance);
    const expected = { all: "0", default: "0", lo: "0", eth0: "0", eth1: "0", renamed0: "0" };
    assert.deepEqual(await routeLocalnet(node.netnsPath), { ...expected, [own.device]: "1", [born.device]: "0" });
  });
}

async function isOn(node: KindNode, device: string): Promise<true | undefined> {
  return (await routeLocalnet(node.netnsPath))[device] === "1" ? true : undefined;
}

test("what somebody switches off is switched on again at once, and told; who does so again is told of, not fought (K50)", async () => {
  await using node = await world.node("switched");
  await using first = await startPod(node);
  await using instance = await world.serve(WAY);
  await waitForWorkingNode(instance, node.name);
  // One that was there when we came, and one that came later.
  await using later = await startPod(node);
  for (const { device } of [first, later]) {
    await node.setSysctl(keyOf(device), 0);
    await waitFor(`${device} to be let in again`, async () => await isOn(node, device));
  }
  for (const pod of [first, later]) assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  assert.match(instance.log, new RegExp(`"level":"warn".*\\b${first.device}\\b.*route_localnet`));
  await node.setSysctl(keyOf(first.device), 0);
  const report = await waitForNode(instance, node.name, ({ state }) => state === "degraded");
  assert.match(report.reasons.join(), new RegExp(`route_localnet.*\\b${first.device}\\b.*once more`));
  assert.equal(await isOn(node, first.device), undefined);
  // The doctor's own pod has an interface of its own, which is not switched off.
  const { code, stdout } = await dns11(["kind", "doctor", "-H", world.engine.host, "--json", node.name]);
  const [told] = JSON.parse(stdout) as { findings: { code: string; state: string; detail: string }[] }[];
  const wrong = told?.findings.filter(({ state }) => state !== "ok") ?? [];
  assert.deepEqual([code, wrong.map((each) => [each.code, each.state])], [1, [["route-localnet", "problem"]]]);
  assert.match(wrong[0]?.detail ?? "", new RegExp(`\\b${first.device}\\b`));
  assert.doesNotMatch(wrong[0]?.detail ?? "", new RegExp(`\\b(eth0|${later.device})\\b`));
  await node.setSysctl(keyOf(first.device), 1);
  await waitForWorkingNode(instance, node.name);
});

test("with the way listener an interface without route_localnet is nobody's trouble", async () => {
  await using node = await world.node("indifferent");
  await using pod = await startPod(node);
  await using instance = await world.serve();
  await waitForWorkingNode(instance, node.name);
  assert.equal((await routeLocalnet(node.netnsPath))[pod.device], "0");
  const { code, stdout } = await dns11(["kind", "doctor", "-H", world.engine.host, node.name]);
  assert.equal(code, 0, stdout);
});
