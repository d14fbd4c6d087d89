/**
 * IPv4 and IPv6: pods of either address family resolve names, and get no nameserver that they cannot reach.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { createNetwork, runContainer, type Container } from "../../support/engine/container.ts";
import { dataOf, dig, digMany } from "../../support/client/dig.ts";
import { startEngine } from "../../support/engine/engine.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  addressesOnLo,
  type KindEnvironment,
  NETWORK,
  ownTables,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { type Pod, startPod } from "../../support/kind/pod.ts";
import { outcomesOf, QueryLoop } from "../../support/client/query-loop.ts";
import { postJson } from "../../support/program/unix-http.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { untilSame } from "../../support/rig/wait.ts";

const LITERAL6 = "fd00:99::53";
const DEDICATED6 = "fd64:6e73:3131::53";
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/;

let world: KindEnvironment;
let peer: Container;

before(async () => {
  world = await startKindEnvironment();
  await createNetwork(world.engine, "six", { ipv6: true });
  peer = await runContainer(world.engine, { name: "peer", networks: ["six"] });
});
after(async () => await world[Symbol.asyncDispose]());

async function nodeWithBoth(name: string): Promise<KindNode> {
  return await world.node(name, { networks: ["six"] });
}

/** Over UDP and TCP, for A and AAAA. */
async function assertAnswered(place: KindNode | Pod, server: string): Promise<void> {
  const queries = ["+notcp", "+tcp"].flatMap((transport) => ["A", "AAAA"].map((type) => ["peer", type, transport]));
  const replies = await digMany(place, server, queries);
  const addresses = [peer.address("six"), peer.address6("six")];
  assert.deepEqual(
    replies.map((reply) => dataOf(reply)[0]),
    [...addresses, ...addresses],
  );
}

function serversIn(text: string): string[] {
  return [...text.matchAll(/^nameserver (\S+)$/gm)].map(([, server = ""]) => server);
}

for (const mode of ["listener", "loopback"]) {
  test(`${mode}: pods with IPv6 alone resolve at the gateway's, the node's and any other IPv6 address (K41, K42)`, async () => {
    for (const [index, ip] of ["gateway", "node", LITERAL6].entries()) {
      const instance = await world.sharedWith(`families: ipv6, mode: ${mode}, ip: ${JSON.stringify(ip)}`);
      await using node = await nodeWithBoth(`${mode}-${index}`);
      const info = (await node.container.inspect()).NetworkSettings.Networks["six"];
      const own = { gateway: info?.IPv6Gateway, node: info?.GlobalIPv6Address }[ip] ?? ip;
      const report = await waitForWorkingNode(instance, node.name);
      assert.deepEqual(report.advertised, [own]);
      for (const cni of ["ptp", "bridge"] as const) {
        await using pod = await startPod(node, { family: "ipv6", cni });
        assert.deepEqual(pod.nameservers, [own]);
        await assertAnswered(pod, own);
      }
      await assertAnswered(node, own);
      await assertAnswered(node, "127.0.0.11");
      const tables = (await ownTables(node.netnsPath)).join("");
      assert.match(tables, /^table ip6 dns11/m);
      assert.doesNotMatch(tables, /dnat to \[?::1\b/);
    }
  });
}

test("a node without an IPv6 network advertises a dedicated IPv6 address (K41)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("ula");
  for (const scope of ["all", "default", "lo"]) await node.setSysctl(`net.ipv6.conf.${scope}.disable_ipv6`, 0);
  const instance = await world.sharedWith("families: ipv6");
  const report = await waitForWorkingNode(instance, node.name);
  assert.deepEqual(report.advertised, [DEDICATED6]);
  await using pod = await startPod(node, { family: "ipv6" });
  assert.deepEqual(await world.webFrom(pod, DEDICATED6), world.found);
});

test("resolv.conf has addresses of the configured families only (K43)", async () => {
  for (const [families, wanted] of [
    ["auto", [true]],
    ["ipv4", [true]],
    ["ipv6", [false]],
    ["both", [true, false]],
  ] as const) {
    const instance = await world.sharedWith(`families: ${families}`);
    await using node = await nodeWithBoth(`configured-${families}`);
    const { advertised } = await waitForWorkingNode(instance, node.name);
    const servers = serversIn(await node.resolvConf());
    assert.deepEqual(servers, advertised);
    assert.deepEqual(
      servers.map((server) => IPV4.test(server)),
      wanted,
      families,
    );
    await using pod = await startPod(node, { family: "dual" });
    for (const server of servers) await assertAnswered(pod, server);
  }
});

test("a node with IPv6 disabled is served over IPv4, also with families: both (K43)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("four");
  await node.setSysctl("net.ipv6.conf.all.disable_ipv6", 1);
  const instance = await world.sharedWith("families: both");
  const { advertised } = await waitForWorkingNode(instance, node.name);
  assert.deepEqual(
    advertised.map((server) => IPV4.test(server)),
    [true],
  );
  assert.doesNotMatch((await ownTables(node.netnsPath)).join(""), /table ip6/);
});

test("a node that gets IPv6 later advertises an IPv6 address as soon as it joins an IPv6 network (K41)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("later");
  const setIpv6 = async (isOff: 0 | 1): Promise<void> => {
    for (const scope of ["all", "default", "lo"]) await node.setSysctl(`net.ipv6.conf.${scope}.disable_ipv6`, isOff);
  };
  await setIpv6(1);
  const instance = await world.sharedWith("families: both");
  assert.equal((await waitForWorkingNode(instance, node.name)).advertised.length, 1);
  await using first = await startPod(node);
  const [server4 = ""] = first.nameservers;
  await using queries = await QueryLoop.start(first, { server: server4, name: "web", perSecond: 50 });
  await setIpv6(0);
  await node.container.connect("six");
  await waitForNode(instance, node.name, ({ advertised, state }) => advertised.length === 2 && state === "working");
  await using pod = await startPod(node, { family: "ipv6" });
  const server = pod.nameservers.find((each) => !IPV4.test(each)) ?? "";
  assert.deepEqual(await world.webFrom(pod, server), world.found);
  assert.deepEqual(Object.keys(outcomesOf(await queries.stop())), ["NOERROR"]);
});

test("a resolv.conf that KIND's entrypoint wrote gets addresses of the configured families, too (K43)", async () => {
  for (const [families, wanted] of [
    ["ipv6", [false]],
    ["both", [true, false]],
  ] as const) {
    await world.sharedWith("nodes: []");
    await using node = await nodeWithBoth("rewritten");
    await node.rewrite();
    const earlier = await node.resolvConf();
    assert.deepEqual(
      serversIn(earlier).map((server) => IPV4.test(server)),
      [true],
    );
    const instance = await world.sharedWith(`families: ${families}`);
    const { advertised } = await waitForWorkingNode(instance, node.name);
    const servers = serversIn(await node.resolvConf());
    assert.deepEqual([servers, servers.map((server) => IPV4.test(server))], [advertised, wanted]);
    await world.sharedWith("nodes: []");
    await untilSame("resolv.conf to be as it was", async () => await node.resolvConf(), earlier);
  }
});

test("a node on a network without IPv4 is served over IPv6 only (K44)", async () => {
  await using engine = await startEngine({ suite: "forky", resolvConf: "nameserver 10.53.0.1\n" });
  await using upstream = await startUpstream(engine, { address: "10.53.0.1" });
  assert.ok(upstream.port > 0);
  const config = { Name: NETWORK, EnableIPv4: false, EnableIPv6: true, IPAM: { Config: [{ Subnet: "fd77::/64" }] } };
  // The host's docker command is too old for this option.
  await postJson(engine.socketPath, "/networks/create", config);
  await using web = await runContainer(engine, { name: "web", networks: [NETWORK] });
  const labels = { "io.x-k8s.kind.cluster": "kind", "io.x-k8s.kind.role": "worker" };
  const node = await runContainer(engine, { name: "six-only", networks: [NETWORK], labels });
  assert.equal(node.address(NETWORK), "");
  const resolvConf = async (): Promise<string> => await node.readFile("/etc/resolv.conf");
  const host = { netnsPath: node.netnsPath, iptables: "nft", resolvConf } as const;
  await using instance = await startDns11(engine, { args: ["--kind", "auto"], settings: { keeper: "off" } });
  const { advertised } = await waitForWorkingNode(instance, node.name);
  const servers = serversIn(await resolvConf());
  assert.deepEqual(servers, advertised);
  assert.deepEqual(
    servers.map((server) => IPV4.test(server)),
    [false],
  );
  await using pod = await startPod(host, { family: "ipv6" });
  for (const place of [pod, node]) {
    assert.deepEqual(dataOf(await dig(place, `@${servers[0]}`, "web", "AAAA")), [web.address6(NETWORK)]);
  }
  assert.equal(await instance.stop(), 0);
  assert.deepEqual(await addressesOnLo(node.netnsPath), []);
});
