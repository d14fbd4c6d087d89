/**
 * The addresses that pods query: which address each setting of kind.ip selects, that an address once advertised is served for as
 * long as the node lives, and what these addresses are for neighbours and the host.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import type { Dns11 } from "../../support/program/dns11.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  addressesOnLo,
  GATEWAY,
  type KindEnvironment,
  NETWORK,
  NO_ANSWERS,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { startDnsmasq } from "../../support/servers/real-server.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

const LITERAL = "192.0.2.99";
const HOST = "192.0.2.53";
const ADD_HOST = ["--add-host", `host.docker.internal:${HOST}`];
/** Set explicitly, because an old dockerd does not report its own choice at its first start. */
const DEFAULT_BRIDGE = "10.76.0.1";

let world: KindEnvironment;

/** All but one of the tests share a dns11, which reloads its settings. */
before(
  async () => (world = await startKindEnvironment({ suite: "forky", daemonJson: { bip: `${DEFAULT_BRIDGE}/24` } })),
);
after(async () => await world[Symbol.asyncDispose]());

/** This is the only advertised address, and pods are served at it. */
async function assertServedAt(instance: Dns11, node: KindNode, address: string): Promise<void> {
  const report = await waitForWorkingNode(instance, node.name);
  assert.deepEqual(report.advertised, [address], JSON.stringify(report));
  await using pod = await startPod(node);
  assert.deepEqual(pod.nameservers, [address]);
  for (const place of [pod, node]) assert.deepEqual(await world.webFrom(place, address), world.found);
}

test("each value of kind.ip is advertised to pods, which are answered there (K10)", async () => {
  for (const [ip, args, wanted] of [
    ["auto", [], GATEWAY],
    ["auto", ADD_HOST, GATEWAY],
    ["gateway", ADD_HOST, GATEWAY],
    ["node", [], undefined],
    ["host", ADD_HOST, HOST],
    ["host", [], DEFAULT_BRIDGE],
    ["host", ["--add-host", "host.docker.internal:127.0.0.1"], GATEWAY],
    [LITERAL, [], LITERAL],
  ] as const) {
    const instance = await world.sharedWith(`ip: ${ip}`);
    await using node = await world.node("words", { args });
    await assertServedAt(instance, node, wanted ?? node.address(NETWORK));
  }
});

test("with kind.ip=auto the address that KIND's entrypoint chose is kept (K10)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("chosen", { entrypoint: "kind", args: ADD_HOST });
  await node.waitForEntrypoint();
  assert.equal(node.vip, HOST);
  await assertServedAt(await world.sharedWith("ip: auto"), node, HOST);
});

test("routes that KIND's entrypoint cannot handle change nothing: two default routes, one without a gateway, none (K10)", async () => {
  const instance = await world.sharedWith("ip: auto");
  for (const [index, lines] of [
    ["route add default via 10.77.0.254 dev eth0 metric 50"],
    ["route replace default dev eth0"],
    ["route delete default"],
  ].entries()) {
    await using node = await world.node(`routes-${index}`);
    await checkIn(node.netnsPath, "ip", ["-batch", "-"], `${lines.join("\n")}\n`);
    await assertServedAt(instance, node, GATEWAY);
  }
});

test("on a network without a gateway a dedicated address is advertised, which the node reaches, too (K10)", async () => {
  await createNetwork(world.engine, "inner", { internal: true });
  await using web = await runContainer(world.engine, { name: "inner-web", networks: ["inner"] });
  const instance = await world.sharedWith();
  await using node = await world.node("shut-in", { networks: ["inner"] });
  const { advertised } = await waitForWorkingNode(instance, node.name);
  const [address = ""] = advertised;
  assert.match(address, /^\d+\.\d+\.\d+\.\d+$/);
  await using pod = await startPod(node);
  assert.deepEqual(pod.nameservers, [address]);
  for (const place of [pod, node]) {
    assert.deepEqual(dataOf(await dig(place, `@${address}`, "inner-web")), [web.address("inner")]);
  }
});

test("after a change of kind.ip new pods get another address, and earlier pods are answered at theirs (K11)", async () => {
  const instance = await world.sharedWith("ip: gateway");
  await using node = await world.node("moving");
  await waitForWorkingNode(instance, node.name);
  await using first = await startPod(node);
  assert.deepEqual(first.nameservers, [GATEWAY]);
  const own = node.address(NETWORK);
  const seen = [GATEWAY];
  for (const [ip, address] of [
    [LITERAL, LITERAL],
    ["node", own],
    ["gateway", GATEWAY],
  ] as const) {
    await world.sharedWith(`ip: ${ip}`);
    const report = await waitForNode(
      instance,
      node.name,
      ({ state, advertised }) => state === "working" && advertised.includes(address),
    );
    seen.push(address);
    assert.deepEqual(new Set(report.captured.filter((one) => !one.includes(":"))), new Set(seen));
    await using next = await startPod(node);
    assert.deepEqual(next.nameservers, [address]);
    for (const pod of [first, next]) {
      for (const each of seen) assert.deepEqual(await world.webFrom(pod, each), world.found, `${ip}: ${each}`);
    }
  }
});

test("joining and leaving networks, also the first one, does not change the advertised address (K12)", async () => {
  await createNetwork(world.engine, "a-first", { subnet: "10.79.0.0/24" });
  const instance = await world.sharedWith();
  await using node = await world.node("joining");
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  const change = async (work: Promise<void>, networks: readonly string[]): Promise<void> => {
    await work;
    await waitForNode(instance, node.name, () => true);
    await waitFor(`the node to be on ${networks.join()}`, async () => {
      const status = await instance.container(node.name);
      return isDeepStrictEqual(status?.networks.toSorted(), networks) ? true : undefined;
    });
    const report = await waitForWorkingNode(instance, node.name);
    assert.deepEqual(report.advertised, [GATEWAY]);
    await using next = await startPod(node);
    assert.deepEqual(next.nameservers, [GATEWAY]);
    for (const each of [pod, next]) {
      assert.notEqual((await dig(each, `@${GATEWAY}`, node.name)).status, "", networks.join());
    }
  };
  const { container } = node;
  await change(container.connect("a-first"), ["a-first", NETWORK]);
  await change(container.disconnect(NETWORK), ["a-first"]);
  await change(container.connect(NETWORK), ["a-first", NETWORK]);
  assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
});

test("with kind.ip=node neighbours and the host get no answer on the node's port 53 without kind.expose (K13)", async () => {
  await using node = await world.node("closed");
  const own = node.address(NETWORK);
  await using neighbour = await runContainer(world.engine, { name: "neighbour", networks: [NETWORK] });
  for (const mode of ["listener", "loopback"]) {
    const instance = await world.sharedWith(`ip: node, mode: ${mode}`);
    await assertServedAt(instance, node, own);
    for (const place of [neighbour, world.engine])
      assert.deepEqual(await world.webFrom(place, own, 2), NO_ANSWERS, mode);
    await world.sharedWith(`ip: node, mode: ${mode}, expose: true`);
    await assertServedAt(instance, node, own);
    for (const place of [neighbour, world.engine]) assert.deepEqual(await world.webFrom(place, own), world.found, mode);
    // The next mode finds the node as it was.
    await world.sharedWith("nodes: []");
  }
});

test("neighbours still get no answer after the node left its network and joined it again (K13, K29)", async () => {
  const instance = await world.sharedWith("ip: node");
  await using node = await world.node("rejoining", { networks: [{ name: NETWORK, ip: "10.77.0.77" }] });
  await using neighbour = await runContainer(world.engine, { name: "neighbour", networks: [NETWORK] });
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  const own = node.address(NETWORK);
  // The same address on another interface. dns11 sees both changes as one where it learns of them only afterwards.
  for (const [first, last] of [[], ["SIGSTOP", "SIGCONT"]] as const) {
    if (first !== undefined) instance.kill(first);
    await node.container.disconnect(NETWORK);
    await node.container.connect({ name: NETWORK, ip: own });
    if (last !== undefined) instance.kill(last);
    await waitFor("dns11 to handle the change", async () =>
      isDeepStrictEqual(await world.webFrom(neighbour, own, 2), NO_ANSWERS) ? true : undefined,
    );
    await waitForWorkingNode(instance, node.name);
    for (let count = 0; count < 3; count++) {
      assert.deepEqual(await world.webFrom(neighbour, own, 2), NO_ANSWERS);
      assert.deepEqual(await world.webFrom(pod, own), world.found);
    }
  }
});

test("with kind.ip=gateway neighbours still reach a server at the gateway's port 53, and pods reach us (K14)", async () => {
  await createNetwork(world.engine, "served", { subnet: "10.78.0.0/24", args: ["--gateway", "10.78.0.1"] });
  await using server = await startUpstream(world.engine, { address: "10.78.0.1" });
  await using neighbour = await runContainer(world.engine, { name: "beside", networks: ["served"] });
  const instance = await world.sharedWith("ip: gateway");
  await using node = await world.node("gated", { networks: ["served"] });
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  assert.deepEqual(dataOf(await dig(neighbour, "@10.78.0.1", "x5.ok.test")), ["192.0.2.5"]);
  assert.equal((await server.queriesFor("x5.ok.test")).length, 1);
  assert.deepEqual(dataOf(await dig(pod, "@10.78.0.1", "beside")), [neighbour.address("served")]);
  assert.equal((await server.queriesFor("beside")).length, 0);
});

test("if a process listens on the node's port 53, kind.ip=node is refused with the reason and changes nothing, unless forced (K15)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("taken");
  const own = node.address(NETWORK);
  const lines = [`listen-address=${own}`, "address=/owner.test/192.0.2.1"];
  await using server = await startDnsmasq(node, { address: "127.0.0.1", lines });
  assert.ok(server.pid > 0);
  const text = await node.resolvConf();
  const instance = await world.sharedWith("ip: node");
  const refused = await waitForNode(instance, node.name, ({ state }) => state === "refused");
  assert.match(refused.reasons.join(), /a process listens on port 53 of 10\.77\.0\.\d+ over udp.*kind\.force/);
  assert.deepEqual([refused.advertised, refused.captured], [[], []]);
  assert.equal(await node.resolvConf(), text);
  assert.deepEqual(await addressesOnLo(node.netnsPath), []);
  await using pod = await startPod(node);
  assert.deepEqual(dataOf(await dig(pod, `@${own}`, "owner.test")), ["192.0.2.1"]);
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
  // Until now it is a container like any other: the kernel may answer it, but not its pods.
  await world.sharedWith("ip: node, force: true");
  await waitForWorkingNode(instance, node.name);
  assert.equal((await instance.container(node.name))?.answers?.by, "process");
  assert.deepEqual(await world.webFrom(pod, own), world.found);
  // Neighbours are still served by that process.
  assert.deepEqual(dataOf(await dig(world.engine, `@${own}`, "owner.test")), ["192.0.2.1"]);
});

test("if port 53 of the node is redirected to a pod, kind.ip=node is refused unless forced (K15)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("redirected");
  const dnat = ["-t", "nat", "-A", "PREROUTING", "-p", "udp", "--dport", "53", "-m", "addrtype", "--dst-type", "LOCAL"];
  await checkIn(node.netnsPath, "iptables-nft", [...dnat, "-j", "DNAT", "--to-destination", "10.244.0.9:53"]);
  const instance = await world.sharedWith("ip: node");
  await waitForNode(instance, node.name, ({ state }) => state === "refused");
});

test("after a restart of dns11 with another kind.ip earlier pods are answered at their address (K11)", async () => {
  await world.endShared();
  await using node = await world.node("moved-by-restart");
  const first = await world.serve({ "kind.ip": LITERAL });
  await using _ = first;
  await waitForWorkingNode(first, node.name);
  await using pod = await startPod(node);
  first.kill("SIGKILL");
  await first.exited;
  await using second = await world.serve({ "kind.ip": "gateway" }, { stateDir: first.stateDir });
  await assertServedAt(second, node, GATEWAY);
  assert.deepEqual(await world.webFrom(pod, LITERAL), world.found);
});
