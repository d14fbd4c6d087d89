/**
 * What dns11 changes in a node beside its own tables, and what it blocks: route_localnet, access to the ports of its sockets,
 * other programs' rules, and that its rules take precedence over all others.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { moveDockerRulesToNftables, writeDockerRules } from "../../support/engine/docker-rules.ts";
import type { Dns11 } from "../../support/program/dns11.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  GATEWAY,
  type KindEnvironment,
  NETWORK,
  routeLocalnet,
  rulesOfOthers,
  savedRules,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { routeLoopbackTo } from "../../support/kind/loopback-route.ts";
import { startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { untilSame } from "../../support/rig/wait.ts";

const DEDICATED = "169.254.53.53";
const MODES = ["listener", "loopback"] as const;
const DEAD_PORTS = { udp: 9, tcp: 9 };
/** An answer that only dns11 gives. */
const FORCED_ANSWER = "192.0.2.77";

let world: KindEnvironment;
let neighbour: Container;

before(async () => {
  world = await startKindEnvironment({ suite: "forky" });
  neighbour = await runContainer(world.engine, { name: "neighbour", networks: [NETWORK] });
});
after(async () => await world[Symbol.asyncDispose]());

/** The ports of dns11's sockets on an address of the node. */
async function portsAt(node: KindNode, address: string, instance: Dns11): Promise<string[]> {
  const text = await checkIn(node.netnsPath, "ss", ["-Hlnup"]);
  const ours = text.split("\n").filter((line) => line.includes(`pid=${instance.pid},`));
  return ours.flatMap((line) => {
    const [, port] = new RegExp(`\\s${address.replaceAll(".", "\\.")}:(\\d+)\\s`).exec(line) ?? [];
    return port === undefined ? [] : [port];
  });
}

test("kind mode listener does not change route_localnet (K16)", async () => {
  await world.sharedWith("nodes: []");
  await using plain = await world.node("kept-none");
  await using rewritten = await world.node("kept-kind", { entrypoint: "kind" });
  const nodes = [plain, rewritten];
  for (const node of nodes) await node.waitForEntrypoint();
  await using first = await startPod(plain);
  await using second = await startPod(rewritten);
  const read = async (): Promise<Record<string, string>[]> =>
    await Promise.all(nodes.map(async ({ netnsPath }) => await routeLocalnet(netnsPath)));
  const earlier = await read();
  assert.deepEqual(
    earlier.map(({ all }) => all),
    ["0", "1"],
  );
  const instance = await world.sharedWith("mode: listener");
  for (const { name } of nodes) await waitForWorkingNode(instance, name);
  for (const pod of [first, second]) assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  // The link of a test pod goes a moment after its probe.
  await untilSame("route_localnet as before", read, earlier);
  await world.sharedWith("nodes: []");
  await untilSame("route_localnet as before", read, earlier);
});

test("kind mode loopback sets route_localnet on the interfaces of pods, and restores it (K17)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("opened");
  await using ptp = await startPod(node);
  await using bridged = await startPod(node, { cni: "bridge" });
  // A value that another program set must be restored.
  await node.setSysctl(`net.ipv4.conf.${bridged.device}.route_localnet`, 1);
  const earlier = await routeLocalnet(node.netnsPath);
  const instance = await world.sharedWith("mode: loopback");
  await waitForWorkingNode(instance, node.name);
  const during = await routeLocalnet(node.netnsPath);
  for (const name of [ptp.device, "default"]) assert.equal(during[name], "1", name);
  for (const name of ["lo", "eth0", "all"]) assert.equal(during[name], earlier[name], name);
  for (const pod of [ptp, bridged]) assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  await world.sharedWith("nodes: []");
  assert.deepEqual(await routeLocalnet(node.netnsPath), earlier);
});

test("in kind mode loopback a neighbour's packets for 127.0.0.11 are dropped, and pods are served (K18)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("guarded", { entrypoint: "kind" });
  await node.waitForEntrypoint();
  await using _route = await routeLoopbackTo(neighbour, node.address(NETWORK));
  const dockerPort = await findDockerPort(node);
  const query = async (port: string, timeS: number): Promise<string[]> =>
    dataOf(await dig(neighbour, "@127.0.0.11", "-p", port, "web", `+time=${timeS}`));
  // KIND leaves Docker's own resolver open to neighbours.
  assert.deepEqual(await query(dockerPort, 10), [world.web.address(NETWORK)]);
  const instance = await world.sharedWith("mode: loopback");
  await waitForWorkingNode(instance, node.name);
  const ours = await portsAt(node, "127.0.0.11", instance);
  assert.equal(ours.length, 2);
  for (const port of [...ours, dockerPort]) assert.deepEqual(await query(port, 1), [], port);
  const { dropped } = await waitForNode(instance, node.name, (report) => report.dropped >= 3);
  assert.ok(dropped >= 3);
  await using pod = await startPod(node);
  for (const place of [pod, node]) assert.deepEqual(await world.webFrom(place, GATEWAY), world.found);
});

test("neither a pod nor a neighbour reaches the ports of our sockets directly (K19)", async () => {
  const instance = await world.sharedWith();
  await using node = await world.node("ports");
  const own = node.address(NETWORK);
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  const [port = ""] = await portsAt(node, DEDICATED, instance);
  await checkIn(neighbour.netnsPath, "ip", ["route", "replace", DEDICATED, "via", own]);
  for (const place of [pod, neighbour]) {
    assert.deepEqual(dataOf(await dig(place, `@${DEDICATED}`, "-p", port, "web", "+time=1")), []);
  }
  assert.ok((await waitForNode(instance, node.name, (report) => report.dropped >= 2)).dropped >= 2);
  assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
});

test("the ports on 127.0.0.11 are unreachable even where KIND has set route_localnet (K19)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("ports-kind", { entrypoint: "kind" });
  await node.waitForEntrypoint();
  await using _route = await routeLoopbackTo(neighbour, node.address(NETWORK));
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  // dig would ignore a reply from another port, but the query would have arrived.
  for (const port of await portsAt(node, "127.0.0.11", instance)) {
    const queryCount = async (): Promise<number | undefined> =>
      (await instance.container(node.name))?.counters?.["queries"];
    const earlier = await queryCount();
    assert.deepEqual(dataOf(await dig(neighbour, "@127.0.0.11", "-p", port, "web", "+time=1")), []);
    assert.equal(await queryCount(), earlier);
  }
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
});

/** Both addresses that the node may query, and the pod's, are redirected to dns11. */
async function assertOurs(node: KindNode): Promise<void> {
  await using pod = await startPod(node);
  for (const [place, server] of [
    [pod, GATEWAY],
    [node, GATEWAY],
    [node, "127.0.0.11"],
  ] as const) {
    for (const transport of ["+notcp", "+tcp"]) {
      const reply = await dig(place, `@${server}`, "host.docker.internal", transport);
      assert.deepEqual(dataOf(reply), [FORCED_ANSWER], reply.raw);
    }
  }
}

/** As KIND rewrites Docker's rules for the gateway, but to ports where nothing listens. */
async function writeDeadRules(node: KindNode, shape: "iptables-legacy" | "iptables-nft"): Promise<void> {
  if (shape === "iptables-legacy") await writeDockerRules(node.netnsPath, shape, DEAD_PORTS);
  const dnat = ["-d", GATEWAY, "-p", "udp", "--dport", "53", "-j", "DNAT", "--to-destination", "127.0.0.11:9"];
  for (const chain of ["PREROUTING", "OUTPUT"]) {
    await checkIn(node.netnsPath, shape, ["-t", "nat", "-A", chain, ...dnat]);
  }
}

test("our rules take precedence over redirects of both iptables, written before or after ours (K23)", async () => {
  await world.sharedWith("nodes: []");
  for (const shape of ["iptables-legacy", "iptables-nft"] as const) {
    await using early = await world.node(`early-${shape}`);
    await using late = await world.node(`late-${shape}`);
    await writeDeadRules(early, shape);
    const instance = await world.sharedWith(`host-docker-internal: ${FORCED_ANSWER}`);
    for (const { name } of [early, late]) await waitForWorkingNode(instance, name);
    await writeDeadRules(late, shape);
    for (const node of [early, late]) await assertOurs(node);
    await world.sharedWith("nodes: []");
  }
});

for (const mode of MODES) {
  test(`${mode}: other programs' rules are the same to the byte before, during and after (K20)`, async () => {
    await world.endShared();
    await using plain = await world.node(`rules-${mode}-none`);
    await using rewritten = await world.node(`rules-${mode}-kind`, { entrypoint: "kind" });
    const nodes = [plain, rewritten];
    for (const node of nodes) await node.waitForEntrypoint();
    await using first = await startPod(plain, { family: "dual" });
    await using second = await startPod(rewritten, { family: "dual" });
    const readRules = async (): Promise<string[][]> =>
      await Promise.all(
        nodes.map(async ({ netnsPath }) => [await rulesOfOthers(netnsPath), await savedRules(netnsPath)]),
      );
    const earlier = await readRules();
    for (const each of earlier) assert.match(each.join(), /DOCKER_OUTPUT.*KIND-MASQ-AGENT/s);
    await using instance = await world.serve({ "kind.mode": mode });
    for (const { name } of nodes) await waitForWorkingNode(instance, name);
    for (const pod of [first, second]) assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
    assert.deepEqual(await readRules(), earlier);
    assert.equal(await instance.stop(), 0);
    assert.deepEqual(await readRules(), earlier);
    for (const { netnsPath } of nodes) {
      assert.doesNotMatch(await checkIn(netnsPath, "nft", ["--stateless", "list", "ruleset"]), /dns11/);
    }
  });
}

test("our rules take precedence over those that dockerd writes with nftables and iptables does not show (K23, K24)", async () => {
  await world.endShared();
  await using node = await world.node("nftables");
  await moveDockerRulesToNftables(node.netnsPath);
  assert.doesNotMatch(await savedRules(node.netnsPath), /^-A/m);
  await using instance = await world.serveWith(world.settings(`host-docker-internal: ${FORCED_ANSWER}`));
  await waitForWorkingNode(instance, node.name);
  await assertOurs(node);
  assert.equal(await instance.stop(), 0);
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
});

test("a node with iptables-legacy rules only is served (K24)", async () => {
  await world.endShared();
  await using node = await world.node("legacy");
  const { udp, tcp } = await moveDockerRulesToNftables(node.netnsPath);
  await checkIn(node.netnsPath, "nft", ["flush", "ruleset"]);
  await writeDockerRules(node.netnsPath, "iptables-legacy", { udp, tcp });
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
  await using instance = await world.serveWith(world.settings(`host-docker-internal: ${FORCED_ANSWER}`));
  await waitForWorkingNode(instance, node.name);
  await assertOurs(node);
  assert.equal(await instance.stop(), 0);
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
});

/** The port of Docker's resolver on 127.0.0.11. */
async function findDockerPort(node: KindNode): Promise<string> {
  const saved = await checkIn(node.netnsPath, "iptables-nft-save", ["-t", "nat"]);
  return /-p udp .*--to-destination 127\.0\.0\.11:(\d+)$/m.exec(saved)?.[1] ?? "";
}
