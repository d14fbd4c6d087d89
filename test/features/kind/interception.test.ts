/**
 * How queries of a node and its pods reach dns11: in both kind modes, for both kinds of pod networks, before and after KIND's own
 * rewrite; and that nothing but queries does.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import {
  type KindEnvironment,
  GATEWAY,
  NETWORK,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startPod } from "../../support/kind/pod.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const MODES = ["listener", "loopback"] as const;

let world: KindEnvironment;

before(async () => (world = await startKindEnvironment({ suite: "forky" })));
after(async () => await world[Symbol.asyncDispose]());

for (const mode of MODES) {
  test(`${mode}, with and without KIND's own rewrite: pods of every network and the node resolve, also at 127.0.0.11 (K4, K5, K7, K8)`, async () => {
    await world.endShared();
    await using plain = await world.node(`${mode}-none`);
    await using rewritten = await world.node(`${mode}-kind`, { entrypoint: "kind" });
    for (const node of [plain, rewritten]) await node.waitForEntrypoint();
    await using beforePlain = await startPod(plain, { cni: "bridge", bridgeNfCall: 0 });
    await using beforeRewritten = await startPod(rewritten, { cni: "bridge", bridgeNfCall: 0 });
    await using instance = await world.serve({ "kind.mode": mode });
    for (const [node, earlier] of [
      [plain, beforePlain],
      [rewritten, beforeRewritten],
    ] as const) {
      const report = await waitForWorkingNode(instance, node.name);
      assert.deepEqual([report.advertised, report.mode], [[GATEWAY], mode]);
      // A pod from before the bridge setting changes, one from after, and one with its own veth pair.
      assert.deepEqual(await world.webFrom(earlier, GATEWAY), world.found, "bridge, nf-call 0");
      await using bridged = await startPod(node, { cni: "bridge", bridgeNfCall: 1 });
      await using ptp = await startPod(node);
      assert.deepEqual(ptp.nameservers, [GATEWAY]);
      for (const [who, pod] of Object.entries({ earlier, bridged, ptp })) {
        assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found, who);
        assert.deepEqual(dataOf(await dig(pod, `@${GATEWAY}`, "x7.ok.test")), ["192.0.2.7"], who);
      }
      assert.deepEqual(await world.webFrom(node, GATEWAY), world.found, "the node, at the gateway");
      assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found, "the node, at Docker's address");
    }
  });
}

for (const mode of MODES) {
  test(`${mode}: only port 53 is captured; other ports of the gateway reach the gateway (K6)`, async () => {
    await using node = await world.node(`${mode}-ports`);
    const instance = await world.sharedWith(`mode: ${mode}`);
    await waitForNode(instance, node.name, (report) => report.mode === mode && report.state === "working");
    // On the real gateway, which is the engine's host.
    await using other = await startUpstream(world.engine, { address: GATEWAY, port: 8080 });
    await using pod = await startPod(node);
    for (const place of [pod, node]) {
      for (const transport of ["+notcp", "+tcp"]) {
        const reply = await dig(place, `@${GATEWAY}`, "-p", "8080", "x9.ok.test", transport);
        assert.deepEqual(dataOf(reply), ["192.0.2.9"], reply.raw);
      }
    }
    assert.equal((await other.queriesFor("x9.ok.test")).length, 4);
  });
}

test("a pod resolves the names that its node resolves: those of the node's networks only (K9)", async () => {
  const { engine } = world;
  await createNetwork(engine, "second");
  await createNetwork(engine, "foreign");
  await using mine = await runContainer(engine, {
    name: "mine",
    networks: [{ name: "second", aliases: ["my-alias"] }],
  });
  await using theirs = await runContainer(engine, { name: "theirs", networks: ["foreign"] });
  assert.notEqual(theirs.address("foreign"), "");
  await using node = await world.node("two-networks", { networks: [NETWORK, "second"] });
  const instance = await world.sharedWith();
  const { advertised } = await waitForWorkingNode(instance, node.name);
  const [server = ""] = advertised;
  await using pod = await startPod(node);
  for (const name of ["mine", "my-alias", "mine.second"]) {
    assert.deepEqual(dataOf(await dig(pod, `@${server}`, name)), [mine.address("second")], name);
  }
  assert.equal((await dig(pod, `@${server}`, "theirs")).status, "NXDOMAIN");
});

test("dns11 sees the pod's address, not the node's (K9)", async () => {
  await using node = await world.node("seen");
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  await dig(pod, `@${GATEWAY}`, "web");
  const { stdout } = await node.enter("conntrack", ["-L", "-p", "udp", "--orig-port-dst", "53"]);
  const line = stdout.split("\n").find((one) => one.includes(`src=${pod.address} dst=${GATEWAY}`)) ?? stdout;
  // The reply direction goes from our socket to the pod itself, so the query was not masqueraded.
  assert.match(line, new RegExp(String.raw`src=169\.254\.53\.53 dst=${pod.address.replaceAll(".", String.raw`\.`)} `));
});
