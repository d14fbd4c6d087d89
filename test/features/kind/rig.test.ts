// Tests the rig of the KIND mode on a real engine: KIND's own rules, without dns11, behave in these containers as in real nodes,
// including their faults. So every resolver queried here is Docker's.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { moveDockerRulesToNftables } from "../../support/engine/docker-rules.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type KindNode, runKindNode } from "../../support/kind/kind-node.ts";
import { startPod } from "../../support/kind/pod.ts";
import { loopProbe, startPodForwarder } from "../../support/kind/pod-forwarder.ts";
import { outcomesOf, queryLoop } from "../../support/client/query-loop.ts";
import { startUpstream, type Upstream } from "../../support/servers/upstream.ts";

const NETWORK = "kind";
const GATEWAY = "10.77.0.1";
const VIP = `@${GATEWAY}`;
// Not the loopback of the engine's host: dockerd 20.10 looks for that inside a container that has --dns-search.
const UPSTREAM = "10.53.0.1";
const ALL_LOCALNET = "net.ipv4.conf.all.route_localnet";

let engine: Engine;
// Without an upstream for dockerd each lookup of the entrypoint takes 5 s.
let upstream: Upstream;
let web: Container;

before(async () => {
  engine = await startEngine({ suite: "bookworm", resolvConf: `nameserver ${UPSTREAM}\n` });
  upstream = await startUpstream(engine, { address: UPSTREAM });
  await createNetwork(engine, NETWORK, { subnet: "10.77.0.0/24", args: ["--gateway", GATEWAY] });
  web = await runContainer(engine, { name: "web", networks: [NETWORK] });
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function startNode(name: string): Promise<KindNode> {
  const node = await runKindNode(engine, { name, networks: [NETWORK] });
  await node.waitForEntrypoint();
  return node;
}

function webOnly(): string[] {
  return [web.address(NETWORK)];
}

test("KIND serves node and pods through the gateway, by UDP and TCP, and ends 127.0.0.11 on the node", async () => {
  await using node = await startNode("kind-worker");
  assert.deepEqual([node.vip, node.iptables, await node.gateway(NETWORK)], [GATEWAY, "nft", GATEWAY]);
  const { Labels: labels, Hostname: hostname } = (await node.container.inspect()).Config;
  assert.equal(labels["io.x-k8s.kind.cluster"], "kind");
  assert.equal(labels["io.x-k8s.kind.role"], "worker");
  assert.equal(hostname, "kind-worker");
  assert.match(await node.resolvConf(), /^nameserver 10\.77\.0\.1$/m);
  await using ptp = await startPod(node);
  await using bridged = await startPod(node, { cni: "bridge", bridgeNfCall: 1 });
  assert.deepEqual(ptp.nameservers, [GATEWAY]);
  for (const transport of ["+notcp", "+tcp"]) {
    for (const place of [node, ptp, bridged]) {
      assert.deepEqual(dataOf(await dig(place, VIP, "web", transport)), webOnly());
    }
  }
  assert.deepEqual(dataOf(await dig(ptp, VIP, "x7.ok.test")), ["192.0.2.7"]);
  for (const place of [node, ptp]) assert.match((await dig(place, "web")).raw, /connection refused/);
});

test("without route_localnet the node is served, but its pods time out", async () => {
  await using node = await startNode("kind-worker");
  await using pod = await startPod(node);
  const query = async () => await queryLoop(pod, { server: GATEWAY, name: "web", forMs: 500 });
  assert.deepEqual(Object.keys(outcomesOf(await query())), ["NOERROR"]);
  await node.setSysctl(ALL_LOCALNET, 0);
  assert.deepEqual(Object.keys(outcomesOf(await query())), ["timeout"]);
  assert.deepEqual(dataOf(await dig(node, VIP, "web")), webOnly());
  await node.setSysctl(`net.ipv4.conf.${pod.device}.route_localnet`, 1);
  assert.deepEqual(Object.keys(outcomesOf(await query())), ["NOERROR"]);
});

test("KIND alone fails with a dockerd that writes its rules with nftables", async () => {
  await using node = await runKindNode(engine, { name: "kind-worker", networks: [NETWORK], entrypoint: "none" });
  await node.waitForEntrypoint();
  await moveDockerRulesToNftables(node.netnsPath);
  assert.deepEqual(dataOf(await dig(node, "web")), webOnly());
  await node.rewrite();
  await node.setSysctl(ALL_LOCALNET, 1);
  assert.equal(node.iptables, "legacy");
  await using pod = await startPod(node);
  assert.deepEqual(pod.nameservers, [GATEWAY]);
  for (const place of [node, pod]) assert.match((await dig(place, VIP, "web")).raw, /connection refused/);
  assert.deepEqual(dataOf(await dig(node, "web", "+tcp")), webOnly());
});

test("a node that restarts runs KIND's entrypoint again", async () => {
  await using node = await startNode("kind-worker");
  // Not by the namespace's inode: the kernel reuses it.
  const { pid } = node.container;
  await node.restart();
  await node.waitForEntrypoint();
  assert.notEqual(node.container.pid, pid);
  await using pod = await startPod(node);
  assert.deepEqual(dataOf(await dig(pod, VIP, "web")), webOnly());
});

test("host.docker.internal is the address for pods where it resolves to more than loopback", async () => {
  const networks = [NETWORK];
  for (const [address, vip] of [
    ["192.0.2.53", "192.0.2.53"],
    ["127.0.0.1", GATEWAY],
  ] as const) {
    const args = ["--add-host", `host.docker.internal:${address}`];
    await using node = await runKindNode(engine, { name: "kind-worker", networks, args });
    await node.waitForEntrypoint();
    assert.equal(node.vip, vip);
    await using pod = await startPod(node);
    assert.deepEqual(pod.nameservers, [vip]);
    assert.deepEqual(dataOf(await dig(pod, `@${vip}`, "web")), webOnly());
  }
});

test("KIND_DNS_SEARCH replaces Docker's search line", async () => {
  const searches = ["", "a.test b.test"];
  for (const search of [undefined, ...searches]) {
    await using node = await runKindNode(engine, {
      name: "kind-worker",
      networks: [NETWORK],
      args: ["--dns-search", "docker.example"],
      ...(search === undefined ? {} : { env: { KIND_DNS_SEARCH: search } }),
    });
    await node.waitForEntrypoint();
    const found = /^search (.*)$/m.exec(await node.resolvConf())?.[1] ?? "";
    assert.equal(found, search ?? "docker.example");
  }
});

test("KIND's rewrite fails if it finds no address, and the rig reports it", async () => {
  await using node = await runKindNode(engine, {
    name: "kind-worker",
    networks: [NETWORK],
    entrypoint: "none",
    args: ["--add-host", "host.docker.internal:127.0.0.1"],
  });
  await node.waitForEntrypoint();
  await node.enter("ip", ["route", "delete", "default"]);
  await assert.rejects(node.rewrite(), /KIND's rewrite in kind-worker: exit [1-9]/);
});

test("a node that cannot write its resolv.conf does not start, and the rig reports it", async () => {
  const args = ["--volume", `${engine.folder}/daemon.json:/etc/resolv.conf:ro`];
  await using node = await runKindNode(engine, { name: "kind-worker", networks: [NETWORK], args });
  await assert.rejects(
    node.waitForEntrypoint(),
    /the entrypoint of kind-worker ended with [1-9].*Read-only file system/s,
  );
});

test("a load balancer's container is left as Docker makes it", async () => {
  await using node = await runKindNode(engine, {
    name: "kind-lb",
    networks: [NETWORK],
    cluster: "other",
    role: "external-load-balancer",
    entrypoint: "none",
  });
  assert.equal((await node.container.inspect()).Config.Labels["io.x-k8s.kind.cluster"], "other");
  assert.match(await node.resolvConf(), /^nameserver 127\.0\.0\.11$/m);
  assert.deepEqual(dataOf(await dig(node, "web")), webOnly());
});

test("pods with IPv6 reach the node's own address and the network behind it", async () => {
  await createNetwork(engine, "six", { ipv6: true });
  await using peer = await runContainer(engine, { name: "peer", networks: ["six"] });
  await using node = await runKindNode(engine, { name: "kind-worker", networks: ["six"] });
  await node.waitForEntrypoint();
  for (const family of ["dual", "ipv6"] as const) {
    await using pod = await startPod(node, { family });
    for (const place of [node.container, peer]) {
      const ping = await pod.enter("busybox", ["ping", "-c1", "-W2", place.address6("six")]);
      assert.equal(ping.code, 0, `${family}: ${ping.stderr}`);
    }
  }
});

test("a forwarder in a pod answers other pods and finds no loop", async () => {
  await using node = await startNode("kind-worker");
  await using pod = await startPod(node);
  await using client = await startPod(node);
  await using forwarder = await startPodForwarder(pod, "dnsmasq");
  assert.ok(forwarder.pid > 0);
  assert.deepEqual(dataOf(await dig(client, `@${pod.address}`, "web")), webOnly());
  const { seen, reply } = await loopProbe(pod);
  assert.deepEqual([seen, reply.status], [1, "NXDOMAIN"]);
});
