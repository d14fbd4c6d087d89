/**
 * Which containers dns11 treats as KIND nodes, and that all others are served at 127.0.0.11 only, without further rules, addresses
 * or changes of resolv.conf.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import type { Dns11 } from "../../support/program/dns11.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  addressesOnLo,
  GATEWAY,
  type KindEnvironment,
  NETWORK,
  ownTables,
  rulesOfOthers,
  startKindEnvironment,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { untilSame } from "../../support/rig/wait.ts";
import { startPod } from "../../support/kind/pod.ts";

const KIND_LABEL = "io.x-k8s.kind.cluster";

let world: KindEnvironment;

before(async () => (world = await startKindEnvironment({ suite: "forky" })));
after(async () => await world[Symbol.asyncDispose]());

type Place = { readonly netnsPath: string; readonly resolvConf: () => Promise<string> };

/** What dns11 may change in a container, beside its own table for 127.0.0.11. */
async function marksOf(place: Place): Promise<unknown> {
  const { netnsPath } = place;
  return [await place.resolvConf(), await rulesOfOthers(netnsPath), await addressesOnLo(netnsPath)];
}

/** The container is not a node: it redirects no pods to dns11. */
async function assertPlain(instance: Dns11, place: Place & Pick<KindNode, "enter" | "name">): Promise<void> {
  const status = await instance.waitFor(place.name, "attached");
  assert.equal(status.node, undefined);
  assert.match((await ownTables(place.netnsPath)).join(""), /hook output/);
  assert.doesNotMatch((await ownTables(place.netnsPath)).join(""), /prerouting|10\.77\.0\.1|ip6/);
  for (const transport of ["+notcp", "+tcp"]) {
    assert.deepEqual(dataOf(await dig(place, "web", transport)), [world.web.address(NETWORK)]);
  }
}

test("without settings for nodes a KIND node is a container like any other, unchanged to the byte (K1)", async () => {
  await using node = await world.node("off");
  const marks = await marksOf(node);
  const instance = await world.sharedWith("nodes: []");
  await assertPlain(instance, node);
  assert.deepEqual(await marksOf(node), marks);
});

test("a container without KIND's label is unchanged to the byte beside a node that is served (K1)", async () => {
  await using node = await world.node("labelled");
  await world.endShared();
  const container = await runContainer(world.engine, { name: "plain", networks: [NETWORK] });
  await using _ = container;
  const plain: Place & Pick<KindNode, "enter" | "name"> = {
    name: "plain",
    netnsPath: container.netnsPath,
    resolvConf: async () => await container.readFile("/etc/resolv.conf"),
    enter: container.enter.bind(container),
  };
  const marks = await marksOf(plain);
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  await assertPlain(instance, plain);
  assert.deepEqual(await marksOf(plain), marks);
});

test("a load balancer of KIND or k3d is served at 127.0.0.11 and advertises no address to pods (K2)", async () => {
  await using kind = await world.node("kind-lb", { role: "external-load-balancer" });
  await using k3d = await world.node("k3d-lb", { labels: { "k3d.cluster": "c", "k3d.role": "loadbalancer" } });
  const marks = [await marksOf(kind), await marksOf(k3d)];
  const instance = await world.sharedWith("nodes: [auto, label=k3d.cluster]");
  for (const node of [kind, k3d]) await assertPlain(instance, node);
  assert.deepEqual([await marksOf(kind), await marksOf(k3d)], marks);
});

test("nodes are selected by a label with or without a value, and by a name pattern (K1)", async () => {
  await using k3d = await world.node("k3d-c-server-0", { labels: { "k3d.role": "server" } });
  await using agent = await world.node("k3d-c-agent-0", { labels: { "k3d.role": "agent" } });
  await using other = await world.node("unlike-k3d");
  for (const [filters, wanted] of [
    ["label=k3d.role", [k3d, agent]],
    ["label=k3d.role=agent", [agent]],
    ["name=k3d-*-server-?", []],
    ["name=k3d-*", [k3d, agent]],
    ["auto", [k3d, agent, other]],
  ] as const) {
    const instance = await world.sharedWith(`nodes: ["${filters}"]`);
    const nodesNow = async (): Promise<string[]> => {
      const { containers } = await instance.status();
      const nodes = containers.filter(({ node, state }) => node !== undefined && state === "attached");
      return nodes.map(({ name }) => name).toSorted();
    };
    await untilSame(filters, nodesNow, wanted.map(({ name }) => name).toSorted());
    for (const node of wanted) {
      await waitForWorkingNode(instance, node.name);
      await using pod = await startPod(node);
      assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
    }
  }
});

test("the label io.dns11.kind overrides the selection (K1)", async () => {
  await using yes = await world.node("opted-in", { labels: { [KIND_LABEL]: "c", "io.dns11.kind": "true" } });
  await using no = await world.node("opted-out", { labels: { "io.dns11.kind": "false" } });
  const instance = await world.sharedWith("nodes: [label=nobody.has.it]");
  await waitForWorkingNode(instance, yes.name);
  await assertPlain(instance, no);
});

/** Three containers that are labelled as nodes but cannot be served, each with its skip code. */
async function runUnservable(owner: KindNode, prefix: string): Promise<[name: string, code: string][]> {
  const labels = { [KIND_LABEL]: "c" };
  const refusals: [string, string][] = [];
  for (const [word, network, code] of [
    ["host", "host", "host-network"],
    ["none", "none", "no-network"],
    ["owner", `container:${owner.container.id}`, "shares-namespace"],
  ] as const) {
    const name = `${prefix}-on-${word}`;
    await runContainer(world.engine, { name, labels, args: ["--network", network] });
    refusals.push([name, code]);
  }
  return refusals;
}

test("a node on the host's, no or another container's network is skipped, and status says why (K3)", async () => {
  await using owner = await world.node("owner");
  const refusals = await runUnservable(owner, "selected");
  const instance = await world.sharedWith();
  for (const [name, code] of refusals) {
    const status = await instance.container(name);
    assert.deepEqual([status?.state, status?.code, status?.node], ["skipped", code, undefined]);
  }
  await waitForWorkingNode(instance, owner.name);
});

test("a node that is skipped for its network is logged once, with the reason (K3)", async () => {
  await world.endShared();
  await using owner = await world.node("owner");
  const refusals = await runUnservable(owner, "logged");
  await using instance = await world.serve();
  for (const [name] of refusals) await instance.logs(new RegExp(`"${name}"`));
  assert.equal(await instance.stop(), 0);
  for (const [name] of refusals) assert.equal(instance.log.split(`"${name}"`).length - 1, 1, instance.log);
});
