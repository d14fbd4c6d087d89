/**
 * The lifecycles of a node, its engine and dns11: restarts of the node, also with other addresses and networks, restarts of
 * dockerd, kills of dns11, flushed rules. Pods are answered all the time, or again at once.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import type { Dns11 } from "../../support/program/dns11.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  GATEWAY,
  type KindEnvironment,
  NETWORK,
  ownTables,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { type Pod, startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { outcomesOf, type QueryEnd, QueryLoop, queryLoop } from "../../support/client/query-loop.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";

/** How long clients query before, between and after the events. */
const LONGER_MS = 500;
const ENTRYPOINTS = ["none", "kind"] as const;
/** Nodes of a newer engine have IPv6 on their loopback interface, also on a network without. */
const DEDICATED6 = "fd64:6e73:3131::53";

let world: KindEnvironment;

before(async () => (world = await startKindEnvironment({ suite: "forky", liveRestore: true, withKeeper: true })));
after(async () => await world[Symbol.asyncDispose]());

async function assertServed(node: KindNode, pod: Pod): Promise<void> {
  assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  for (const server of [GATEWAY, "127.0.0.11"])
    assert.deepEqual(await world.webFrom(node, server), world.found, server);
}

/** Waits for the state of the container's current start. */
async function waitForRestarted(instance: Dns11, node: KindNode): Promise<void> {
  const info = await node.container.inspect();
  await waitFor(`${node.name} to be served again`, async () => {
    const found = await instance.container(node.name);
    const isNew = Date.parse(found?.since ?? "") > Date.parse(info.State.StartedAt);
    return isNew && found?.node?.state === "working" ? true : undefined;
  });
}

test("a node that was restarted is served again, with KIND's entrypoint and without (K27)", async (t) => {
  const instance = await world.sharedWith();
  for (const entrypoint of ENTRYPOINTS) {
    await using node = await world.node(`restarted-${entrypoint}`, { entrypoint });
    await waitForWorkingNode(instance, node.name);
    await node.restart();
    const startedMs = Date.parse((await node.container.inspect()).State.StartedAt);
    await waitForRestarted(instance, node);
    await node.waitForEntrypoint();
    await using pod = await startPod(node);
    assert.deepEqual(pod.nameservers, [GATEWAY]);
    await assertServed(node, pod);
    const { verified } = (await instance.container(node.name)) ?? {};
    t.diagnostic(`verified ${Date.parse(verified ?? "") - startedMs} ms after the start`);
  }
});

test("a node that restarts with another address is served, and the old address is not used any more (K28)", async () => {
  const instance = await world.sharedWith("ip: node");
  await using node = await world.node("readdressed");
  const old = node.address(NETWORK);
  assert.deepEqual((await waitForWorkingNode(instance, node.name)).advertised, [old]);
  await node.container.stop();
  await using thief = await runContainer(world.engine, { name: "thief", networks: [NETWORK] });
  assert.equal(thief.address(NETWORK), old);
  await node.container.start();
  const own = node.address(NETWORK);
  assert.notEqual(own, old);
  await waitForRestarted(instance, node);
  const report = await waitForWorkingNode(instance, node.name);
  assert.deepEqual([report.advertised, report.captured], [[own], [own, DEDICATED6]]);
  const ours = [...(await ownTables(node.netnsPath)), await node.resolvConf()].join("");
  assert.doesNotMatch(ours, new RegExp(`\\b${old.replaceAll(".", "\\.")}\\b`));
  await using pod = await startPod(node);
  assert.deepEqual(pod.nameservers, [own]);
  for (const [place, server] of [
    [pod, own],
    [node, own],
    [node, "127.0.0.11"],
  ] as const) {
    assert.deepEqual(await world.webFrom(place, server), world.found);
  }
});

test("a pod is answered while its node joins a network, leaves the first one and rejoins it (K29)", async () => {
  await createNetwork(world.engine, "other");
  await using both = await runContainer(world.engine, { name: "both", networks: [NETWORK, "other"] });
  assert.notEqual(both.address("other"), "");
  const instance = await world.sharedWith();
  await using node = await world.node("joining");
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  await using queries = await QueryLoop.start(pod, { server: GATEWAY, name: "both", perSecond: 50 });
  const isOn = async (...networks: readonly string[]): Promise<true | undefined> =>
    isDeepStrictEqual((await instance.container(node.name))?.networks.toSorted(), networks) ? true : undefined;
  for (const [change, networks] of [
    [async () => await node.container.connect("other"), [NETWORK, "other"]],
    [async () => await node.container.disconnect(NETWORK), ["other"]],
    [async () => await node.container.connect(NETWORK), [NETWORK, "other"]],
  ] as const) {
    await change();
    await waitFor(`the node to be on ${networks.join()}`, async () => await isOn(...networks));
    await waitForWorkingNode(instance, node.name);
    await pause(LONGER_MS);
  }
  assert.deepEqual(Object.keys(outcomesOf(await queries.stop())), ["NOERROR"]);
  assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
});

test("known names are answered while dockerd is down and after its restart, with KIND's entrypoint and without (K12, K30)", async () => {
  await world.sharedWith("nodes: []");
  await using plain = await world.node("bereft-none");
  await using rewritten = await world.node("bereft-kind", { entrypoint: "kind" });
  await rewritten.waitForEntrypoint();
  const instance = await world.sharedWith();
  for (const { name } of [plain, rewritten]) await waitForWorkingNode(instance, name);
  await using plainPod = await startPod(plain);
  await using otherPod = await startPod(rewritten);
  const pods = [
    { node: plain, pod: plainPod },
    { node: rewritten, pod: otherPod },
  ];
  const assertForwarded = async (): Promise<void> => {
    for (const { pod } of pods) assert.deepEqual(dataOf(await dig(pod, `@${GATEWAY}`, "x8.ok.test")), ["192.0.2.8"]);
  };
  await assertForwarded();
  await using first = await QueryLoop.start(plainPod, { server: GATEWAY, name: "web", perSecond: 50 });
  await using second = await QueryLoop.start(otherPod, { server: GATEWAY, name: "web", perSecond: 50 });
  await world.engine.stopDaemon();
  for (const { node, pod } of pods) await assertServed(node, pod);
  await assertForwarded();
  await world.engine.startDaemon();
  const isConnected = async (): Promise<true | undefined> =>
    (await instance.status()).engine?.isConnected ? true : undefined;
  await waitFor("the connection to the engine", isConnected);
  await pause(LONGER_MS);
  for (const queries of [first, second]) assert.deepEqual(Object.keys(outcomesOf(await queries.stop())), ["NOERROR"]);
  await using late = await runContainer(world.engine, { name: "late", networks: [NETWORK] });
  for (const { node, pod } of pods) {
    const report = await waitForWorkingNode(instance, node.name);
    assert.deepEqual(report.advertised, [GATEWAY]);
    await assertServed(node, pod);
    await waitFor("a name that came later", async () => {
      const found = dataOf(await dig(pod, `@${GATEWAY}`, "late"));
      return found.includes(late.address(NETWORK)) ? true : undefined;
    });
  }
});

test("flushing all rules, or deleting our table, does not interrupt the service (K32)", async () => {
  const instance = await world.sharedWith();
  await using node = await world.node("flushed");
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  await using queries = await QueryLoop.start(pod, { server: GATEWAY, name: "web", perSecond: 50 });
  await pause(LONGER_MS);
  await checkIn(node.netnsPath, "nft", ["flush", "ruleset"]);
  const { stderr } = await node.enter("nft", ["delete", "table", "ip", "dns11"]);
  assert.match(stderr, /not permitted/);
  for (const program of ["iptables-nft", "iptables-legacy"])
    await checkIn(node.netnsPath, program, ["-t", "nat", "-F"]);
  await pause(LONGER_MS);
  assert.deepEqual(Object.keys(outcomesOf(await queries.stop())), ["NOERROR"]);
  await assertServed(node, pod);
  assert.equal((await waitForWorkingNode(instance, node.name)).reasons.length, 0);
});

test("an unanswered query from before dns11 served the node does not block its source port (K34)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("unreplied");
  await using pod = await startPod(node);
  const query = async () =>
    outcomesOf(await queryLoop(pod, { server: GATEWAY, name: "web", forMs: 1_000, perSecond: 20, sourcePort: 40_055 }));
  // It goes to the gateway, where nothing answers; conntrack keeps the entry for 30 s.
  assert.equal((await query())["NOERROR"], undefined);
  const listed = await checkIn(node.netnsPath, "conntrack", ["-L", "-p", "udp", "--orig-port-src", "40055"]);
  assert.match(listed, /UNREPLIED/);
  const instance = await world.sharedWith();
  await waitForNode(instance, node.name, ({ state }) => state === "working");
  assert.deepEqual(Object.keys(await query()), ["NOERROR"]);
});

/** The time from the first to the last query that was not answered. */
function awayMs(ends: readonly QueryEnd[]): number {
  const lost = ends.filter(({ outcome }) => outcome !== "NOERROR");
  return lost.length === 0 ? 0 : (lost.at(-1)?.atMs ?? 0) - (lost[0]?.atMs ?? 0);
}

test("after SIGKILL and a restart pods are answered again, also from the same port, with KIND's entrypoint and without (K31, K53)", async (t) => {
  await world.endShared();
  await using plain = await world.node("killed-none");
  await using rewritten = await world.node("killed-kind", { entrypoint: "kind" });
  await rewritten.waitForEntrypoint();
  const nodes = [plain, rewritten];
  const first = await world.serve();
  await using _ = first;
  for (const { name } of nodes) await waitForWorkingNode(first, name);
  await using plainPod = await startPod(plain);
  await using otherPod = await startPod(rewritten);
  const options = { server: GATEWAY, name: "web", perSecond: 50 };
  await using fresh = await QueryLoop.start(plainPod, options);
  await using kept = await QueryLoop.start(plainPod, { ...options, sourcePort: 40_053 });
  await using otherFresh = await QueryLoop.start(otherPod, options);
  await using otherKept = await QueryLoop.start(otherPod, { ...options, sourcePort: 40_053 });
  await pause(LONGER_MS);
  first.kill("SIGKILL");
  await first.exited;
  await using second = await world.serve({}, { stateDir: first.stateDir });
  for (const { name } of nodes) await waitForWorkingNode(second, name);
  const sinceMs = Date.now();
  await pause(LONGER_MS);
  for (const [whose, queries] of Object.entries({
    "fresh ports": fresh,
    "one port": kept,
    "fresh ports after KIND's rewrite": otherFresh,
    "one port after KIND's rewrite": otherKept,
  })) {
    const ends = await queries.stop();
    t.diagnostic(`${whose}: away for ${awayMs(ends)} ms: ${JSON.stringify(outcomesOf(ends))}`);
    assert.deepEqual(Object.keys(outcomesOf(ends, sinceMs)), ["NOERROR"], whose);
  }
  for (const [node, pod] of [
    [plain, plainPod],
    [rewritten, otherPod],
  ] as const) {
    await assertServed(node, pod);
    const tables = (await ownTables(node.netnsPath)).map((table) => table.split(" {", 1)[0]);
    assert.equal(tables.length, new Set(tables).size);
  }
});

test("after a graceful stop and a restart a pod that reuses its port gets an answer to its next query (K31)", async (t) => {
  await world.endShared();
  await using node = await world.node("relieved", { entrypoint: "kind" });
  await node.waitForEntrypoint();
  const first = await world.serve();
  await using _ = first;
  await waitForWorkingNode(first, node.name);
  await using pod = await startPod(node);
  await using queries = await QueryLoop.start(pod, {
    server: GATEWAY,
    name: "web",
    perSecond: 50,
    sourcePort: 40_054,
  });
  await pause(LONGER_MS);
  assert.equal(await first.stop(), 0);
  await pause(500);
  await using second = await world.serve({}, { stateDir: first.stateDir });
  await waitForWorkingNode(second, node.name);
  const sinceMs = Date.now();
  await pause(LONGER_MS);
  const ends = await queries.stop();
  t.diagnostic(JSON.stringify(outcomesOf(ends)));
  assert.deepEqual(Object.keys(outcomesOf(ends, sinceMs)), ["NOERROR"]);
});
