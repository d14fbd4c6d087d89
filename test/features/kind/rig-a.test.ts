// Tests the rig that needs no engine: KIND's own rules behave in plain namespaces as in containers, with the rules of every kind
// of dockerd, and the measuring tools of the KIND tests are correct.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";

import { check } from "../../support/program/command.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import type { DockerRules } from "../../support/engine/docker-rules.ts";
import { routeLoopbackTo } from "../../support/kind/loopback-route.ts";
import { POD_GATEWAY6, startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { loopProbe, startPodForwarder } from "../../support/kind/pod-forwarder.ts";
import { outcomesOf, QueryLoop, queryLoop } from "../../support/client/query-loop.ts";
import { startDnsmasq } from "../../support/servers/real-server.ts";
import {
  SIMULATED_NETWORK,
  type SimulatedNetwork,
  startSimulatedNetwork,
} from "../../support/kind/simulated-network.ts";
import { pause } from "../../support/rig/wait.ts";

const VIP = `@${SIMULATED_NETWORK.gateway}`;
const WEB = [SIMULATED_NETWORK.names.web];
// A query just before an event may end just after it.
const EDGE_MS = 500;
const SPAN_MS = 1_000;
const DROP = `table ip block {
  chain input { type filter hook input priority 0; udp dport ${SIMULATED_NETWORK.resolverPort} drop; }
}
`;
const ALL_LOCALNET = "net.ipv4.conf.all.route_localnet";

async function startKind(rules?: DockerRules): Promise<SimulatedNetwork> {
  const rig = await startSimulatedNetwork({ rules });
  await rig.node.rewrite();
  await rig.node.setSysctl(ALL_LOCALNET, 1);
  return rig;
}

for (const rules of ["iptables-nft", "iptables-legacy"] as const) {
  await test(`with ${rules} rules KIND serves pods through the gateway, and 127.0.0.11 is dead on the node`, async () => {
    await using rig = await startSimulatedNetwork({ rules });
    const { node } = rig;
    assert.deepEqual(dataOf(await dig(node, "web")), WEB);
    await node.rewrite();
    await using pod = await startPod(node);
    assert.deepEqual(pod.nameservers, [SIMULATED_NETWORK.gateway]);
    assert.deepEqual(dataOf(await dig(node, VIP, "web")), WEB);
    assert.equal((await dig(pod, VIP, "web", "+time=1")).timedOut, true, "no route_localnet");
    await node.setSysctl(ALL_LOCALNET, 1);
    for (const transport of ["+notcp", "+tcp"]) assert.deepEqual(dataOf(await dig(pod, VIP, "web", transport)), WEB);
    assert.match((await dig(node, "web")).raw, /connection refused/);
    assert.match((await dig(pod, "web")).raw, /connection refused/);
  });
}

await test("rules that iptables does not show are not rewritten: KIND alone leaves node and pods without DNS", async () => {
  await using rig = await startKind("nftables");
  await using pod = await startPod(rig.node);
  assert.deepEqual(pod.nameservers, [SIMULATED_NETWORK.gateway]);
  for (const place of [rig.node, pod]) {
    assert.match((await dig(place, VIP, "web")).raw, /connection refused/);
  }
  assert.deepEqual(dataOf(await dig(rig.node, "web")), WEB);
});

await test("the node has its own files, and one of them is mounted", async () => {
  const before = [readdirSync("/etc"), readdirSync("/run")];
  await using rig = await startSimulatedNetwork({
    resolvConf: "# 127.0.0.1\nsearch a.test\nnameserver 127.0.0.11\noptions ndots:0\n",
  });
  await rig.node.rewrite({ KIND_DNS_SEARCH: "b.test c.test" });
  const text = `search b.test c.test\n# 127.0.0.1\nnameserver ${SIMULATED_NETWORK.gateway}\noptions ndots:0\n`;
  assert.equal(await rig.node.resolvConf(), text);
  assert.equal((await rig.node.enter("cat", ["/etc/resolv.conf"])).stdout, text);
  assert.match((await rig.node.enter("cat", ["/etc/resolv.conf.original"])).stdout, /^nameserver 127\.0\.0\.11$/m);
  assert.match((await rig.node.enter("mv", ["/etc/hosts", "/etc/resolv.conf"])).stderr, /busy/);
  assert.equal((await rig.node.enter("uname", ["-n"])).stdout, "node\n");
  assert.deepEqual([readdirSync("/etc"), readdirSync("/run")], before, "the machine's");
});

await test("pods on a bridge are served like those with their own veth pair", async () => {
  await using rig = await startKind();
  for (const bridgeNfCall of [0, 1] as const) {
    await using pod = await startPod(rig.node, { cni: "bridge", bridgeNfCall });
    await using other = await startPod(rig.node, { cni: "bridge", address: "10.244.0.99" });
    await using ownLink = await startPod(rig.node);
    for (const transport of ["+notcp", "+tcp"]) assert.deepEqual(dataOf(await dig(pod, VIP, "web", transport)), WEB);
    assert.equal((await pod.enter("busybox", ["ping", "-c1", "-W1", other.address])).code, 0, "pod to pod");
    assert.equal(
      (await ownLink.enter("busybox", ["ping", "-c1", "-W1", SIMULATED_NETWORK.peer])).code,
      0,
      "pod to the network, masqueraded",
    );
    await rig.node.setSysctl(ALL_LOCALNET, 0);
    assert.equal((await dig(pod, VIP, "web", "+time=1")).timedOut, true);
    // The interface for all pods on a bridge is the bridge.
    await rig.node.setSysctl(`net.ipv4.conf.${pod.device}.route_localnet`, 1);
    assert.deepEqual(dataOf(await dig(pod, VIP, "web")), WEB);
    await rig.node.setSysctl(`net.ipv4.conf.${pod.device}.route_localnet`, 0);
    await rig.node.setSysctl(ALL_LOCALNET, 1);
  }
});

await test("pods with IPv6 reach the node over it", async () => {
  await using rig = await startKind();
  for (const cni of ["ptp", "bridge"] as const) {
    await using dual = await startPod(rig.node, { cni, family: "dual" });
    await using only = await startPod(rig.node, { cni, family: "ipv6" });
    await using server = await startDnsmasq(rig.node, { address: POD_GATEWAY6, lines: ["host-record=six,192.0.2.6"] });
    assert.ok(server.pid > 0);
    for (const pod of [dual, only]) {
      for (const transport of ["+notcp", "+tcp"]) {
        assert.deepEqual(dataOf(await dig(pod, `@${POD_GATEWAY6}`, "six", transport)), ["192.0.2.6"], cni);
      }
    }
    assert.equal((await dual.enter("busybox", ["ping", "-c1", "-W1", only.addresses[0] ?? ""])).code, 0, "pod to pod");
    assert.deepEqual(dataOf(await dig(dual, VIP, "web")), WEB);
    assert.match((await dig(only, VIP, "web")).raw, /unreachable/);
  }
});

for (const program of ["dnsmasq", "unbound"] as const) {
  await test(`${program} in a pod forwards to the node's nameserver, and a loop is detected`, async () => {
    await using rig = await startKind();
    await using pod = await startPod(rig.node);
    await using client = await startPod(rig.node);
    {
      await using forwarder = await startPodForwarder(pod, program);
      assert.ok(forwarder.pid > 0);
      assert.deepEqual(dataOf(await dig(client, `@${pod.address}`, "web")), WEB);
      const { seen, reply } = await loopProbe(pod);
      assert.equal(seen, 1);
      assert.equal(reply.timedOut, false);
    }
    await using forwarder = await startPodForwarder(pod, program, ["127.0.0.11"]);
    assert.ok(forwarder.pid > 0);
    const { seen } = await loopProbe(pod);
    assert.ok(seen > 1, `seen ${seen} times`);
    assert.doesNotMatch((await pod.enter("nft", ["list", "ruleset"])).stdout, /loop-/);
  });
}

for (const sourcePort of [undefined, 34_567]) {
  const socket = sourcePort === undefined ? "fresh sockets" : "one socket";
  await test(`a query loop with ${socket} reports how and when its queries ended`, async () => {
    await using rig = await startKind();
    await using pod = await startPod(rig.node);
    await using looping = await QueryLoop.start(pod, { server: SIMULATED_NETWORK.gateway, name: "web", sourcePort });
    // The time in which a state is certain.
    const spans: Record<string, { fromMs: number; toMs: number }> = {};
    const lasts = async (what: string): Promise<void> => {
      const fromMs = Date.now();
      await pause(SPAN_MS);
      spans[what] = { fromMs, toMs: Date.now() };
    };
    await lasts("at first");
    await checkIn(rig.node.netnsPath, "nft", ["-f", "-"], DROP);
    await lasts("closed");
    await checkIn(rig.node.netnsPath, "nft", ["delete", "table", "ip", "block"]);
    await lasts("open");
    await rig.resolver[Symbol.asyncDispose]();
    await lasts("ended");
    const ends = await looping.stop();
    const during = (what: string): string[] => {
      const { fromMs = 0, toMs = 0 } = spans[what] ?? {};
      return Object.keys(outcomesOf(ends.filter(({ atMs }) => atMs > fromMs && atMs < toMs - EDGE_MS)));
    };
    assert.deepEqual(during("at first"), ["NOERROR"]);
    assert.deepEqual(during("closed"), ["timeout"]);
    assert.deepEqual(during("open"), ["NOERROR"]);
    assert.deepEqual(during("ended"), ["refused"]);
    const quickMs = Math.min(...ends.filter(({ outcome }) => outcome === "timeout").map(({ tookMs }) => tookMs));
    for (const { outcome, tookMs } of ends) if (outcome !== "timeout") assert.ok(tookMs < quickMs, `${tookMs} ms`);
  });
}

await test("a query loop in a pod without the server's address family reports it as unreachable", async () => {
  await using rig = await startKind();
  await using pod = await startPod(rig.node, { family: "ipv6" });
  const ends = await queryLoop(pod, { server: SIMULATED_NETWORK.gateway, name: "web", forMs: 100 });
  assert.deepEqual(Object.keys(outcomesOf(ends)), ["unreachable"]);
});

await test("a neighbour reaches 127.0.0.11 of the node if route_localnet is on", async () => {
  await using rig = await startKind();
  const query = async (...args: readonly string[]) =>
    await dig(rig.peer, "-p", String(SIMULATED_NETWORK.resolverPort), "web", ...args);
  {
    await using route = await routeLoopbackTo(rig.peer, SIMULATED_NETWORK.node);
    assert.ok(route);
    assert.deepEqual(dataOf(await query()), WEB);
    await rig.node.setSysctl(ALL_LOCALNET, 0);
    assert.equal((await query("+time=1")).timedOut, true);
  }
  assert.match((await query()).raw, /connection refused/, "as before");
});

await test("a rig leaves nothing behind", async () => {
  const named = (names: readonly string[]) => names.filter((name) => name.startsWith(`d11-${process.pid}-`));
  {
    await using rig = await startSimulatedNetwork();
    await using pod = await startPod(rig.node);
    assert.equal(named(readdirSync("/run/netns")).length, 4, pod.address);
  }
  assert.deepEqual(named(readdirSync("/run/netns")), []);
  assert.deepEqual(named(readdirSync(tmpdir())), []);
  assert.doesNotMatch(await check("cat", ["/proc/self/mountinfo"]), new RegExp(`d11-${process.pid}-`));
});
