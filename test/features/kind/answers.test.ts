/**
 * Answers to pods: host.docker.internal, unknown names and types, the loop probes of forwarders, and names of the node's networks
 * in both address families.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import {
  GATEWAY,
  type KindEnvironment,
  NETWORK,
  startKindEnvironment,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startPod } from "../../support/kind/pod.ts";
import { loopProbe, startPodForwarder } from "../../support/kind/pod-forwarder.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

const HOST_NAME = "host.docker.internal";
const POD = "10.244.0.200";

/** CoreDNS's timeout for an upstream reply. */
const FORWARDER_MS = 2_000;

let world: KindEnvironment;

before(async () => (world = await startKindEnvironment({ suite: "forky" })));
after(async () => await world[Symbol.asyncDispose]());

test("host.docker.internal is denied, the gateway, an address or forwarded, as set (K45)", async () => {
  await using node = await world.node("hosted");
  const subnet = await world.engine.docker("network", "inspect", "bridge", "-f", "{{(index .IPAM.Config 0).Subnet}}");
  const host = subnet.trim().replace(/\.0\/\d+$/, ".1");
  for (const [word, wanted, isQueried] of [
    ["deny", "NXDOMAIN", false],
    ["gateway", host, false],
    ["192.0.2.77", "192.0.2.77", false],
    ["forward", "NXDOMAIN", true],
  ] as const) {
    await world.upstream.forget();
    const instance = await world.sharedWith(`host-docker-internal: ${word}`);
    await waitForWorkingNode(instance, node.name);
    await using pod = await startPod(node);
    for (const place of [pod, node]) {
      const reply = await dig(place, `@${GATEWAY}`, HOST_NAME);
      assert.deepEqual(dataOf(reply).concat(reply.status === "NOERROR" ? [] : [reply.status]), [wanted], word);
    }
    assert.equal((await world.upstream.queriesFor(HOST_NAME)).length > 0, isQueried, word);
  }
});

test("host.docker.internal has the address from --add-host, and names of a zone and declared ones resolve in pods (K45)", async () => {
  const labels = { "io.dns11.project": "shop", "io.dns11.service": "db", "io.dns11.ports": "postgresql=5432" };
  const ip = "10.77.0.99";
  const networks = [{ name: NETWORK, ip }];
  await using _ = await runContainer(world.engine, { name: "shop-db", labels, networks, args: ["--hostname=one"] });
  await using node = await world.node("added", { args: ["--add-host", `${HOST_NAME}:192.0.2.53`] });
  const names = "records: { api.shop.test: 192.0.2.54, db.alias.test: { cname: shop-db } }";
  const instance = await world.sharedWith("host-docker-internal: gateway", "zone: docker.test", names);
  await waitForWorkingNode(instance, node.name);
  assert.deepEqual(dataOf(await dig(node, HOST_NAME)), ["192.0.2.53"]);
  await using pod = await startPod(node);
  await world.upstream.forget();
  const search = ["+search", "+ndots=5", "+domain=svc.docker.test"];
  const port = "_postgresql._tcp.db.shop.svc.docker.test";
  for (const [words, expected] of [
    [["db.shop.svc.docker.test"], [ip]],
    [[...search, "db.shop"], [ip]],
    [["10-77-0-99.shop.pod.docker.test"], [ip]],
    [["-x", ip], ["one.db.shop.svc.docker.test."]],
    [[port, "SRV"], ["0 100 5432 one.db.shop.svc.docker.test."]],
    [["api.shop.test"], ["192.0.2.54"]],
    [["db.alias.test"], ["shop-db.", ip]],
    [["nobody.shop.svc.docker.test"], []],
  ] as const) {
    for (const [place, server] of [
      [pod, `@${GATEWAY}`],
      [node, "@127.0.0.11"],
    ] as const)
      assert.deepEqual(dataOf(await dig(place, server, ...words)), expected, words.join(" "));
  }
  const leaked = await world.upstream.queries();
  assert.deepEqual(
    leaked.filter(({ name }) => name.endsWith(".test")),
    [],
  );
});

test("queries for unknown types, and for servers that do not reply, are answered before the client times out (K46)", async () => {
  await using node = await world.node("odd");
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  for (const [name, type, wanted] of [
    ["never.heard.of", "HINFO", ["NXDOMAIN"]],
    ["never.heard.of", "TXT", ["NXDOMAIN"]],
    ["x1.ok.test", "TYPE65", ["NOERROR"]],
    ["x1.ok.test", "TYPE4711", ["NOERROR"]],
    ["web", "HINFO", ["NOERROR", "NXDOMAIN"]],
    ["web", "TXT", ["NOERROR", "NXDOMAIN"]],
    ["x.servfail.test", "TXT", ["SERVFAIL"]],
    ["x.refused.test", "TXT", ["SERVFAIL", "REFUSED"]],
    ["silent.test", "A", ["SERVFAIL"]],
    ["silent.test", "HINFO", ["SERVFAIL"]],
  ] as const) {
    let tries = 0;
    await waitFor(`a reply to ${name} ${type} before a forwarder gives up`, async () => {
      // New names below the server that does not reply: the failure of one is cached.
      const queried = name === "silent.test" ? `${type}-${(tries += 1)}.${name}` : name;
      const reply = await dig(pod, `@${GATEWAY}`, queried, type, "+time=15");
      // A server's reply that is too late is a failure.
      if (reply.status === "SERVFAIL" && !(wanted as readonly string[]).includes("SERVFAIL")) return undefined;
      assert.ok((wanted as readonly string[]).includes(reply.status), `${name} ${type}: ${reply.raw}`);
      // On a busy machine one may be late; with the time limit of other containers each would be.
      const tookMs = Number(/^;; Query time: (\d+) msec$/m.exec(reply.raw)?.[1]);
      return tookMs < LIMITS.forwardServerMs ? true : undefined;
    });
  }
  assert.ok(LIMITS.nodeBudgetMs < FORWARDER_MS);
});

for (const program of ["dnsmasq", "unbound"] as const) {
  test(`${program} in a pod forwards to dns11, and sees its loop probe once (K46)`, async () => {
    await using node = await world.node(`forwarding-${program}`);
    const instance = await world.sharedWith();
    await waitForWorkingNode(instance, node.name);
    await using pod = await startPod(node);
    await using client = await startPod(node);
    await using forwarder = await startPodForwarder(pod, program);
    assert.ok(forwarder.pid > 0);
    assert.deepEqual(dataOf(await dig(client, `@${pod.address}`, "web")), [world.web.address(NETWORK)]);
    assert.deepEqual(dataOf(await dig(client, `@${pod.address}`, "x6.ok.test")), ["192.0.2.6"]);
    for (let count = 0; count < 3; count++) {
      const { seen, reply } = await loopProbe(pod);
      assert.equal(seen, 1);
      assert.notEqual(reply.status, "");
    }
  });
}

test("an upstream that is one of our own addresses is not queried, but the others are (K47)", async () => {
  const own = { address: "10.53.0.2" };
  await using second = await startUpstream(world.engine, own);
  await using node = await world.node("listing", {
    args: ["--dns", GATEWAY, "--dns", "127.0.0.11", "--dns", own.address],
  });
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  const { upstreams } = (await instance.container(node.name)) ?? {};
  assert.match(upstreams?.join(" ") ?? "", /10\.53\.0\.2/);
  assert.doesNotMatch(upstreams?.join(" ") ?? "", /10\.77\.0\.1|127\.0\.0\.11/);
  await using pod = await startPod(node);
  assert.deepEqual(dataOf(await dig(pod, `@${GATEWAY}`, "x4.ok.test")), ["192.0.2.4"]);
  assert.notEqual((await second.queriesFor("x4.ok.test")).length, 0);
});

test("an upstream that is left out because it is dns11 itself is reported (K47)", async () => {
  await world.endShared();
  await using node = await world.node("configured", { args: ["--dns", GATEWAY] });
  await using instance = await world.serve();
  const { reasons } = await waitForWorkingNode(instance, node.name);
  const status = JSON.stringify(await instance.container(node.name));
  assert.match([...reasons, status, instance.log].join(), /10\.77\.0\.1\b[^,]*(loop|not used)/);
});

test("an upstream that forwards to dns11 makes no endless loop: each query ends before the client times out (K47)", async () => {
  await using node = await world.node("circling", { args: ["--dns", POD] });
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node, { address: POD });
  await using forwarder = await startPodForwarder(pod, "dnsmasq", [GATEWAY]);
  assert.ok(forwarder.pid > 0);
  for (let count = 0; count < 2; count++) {
    const { seen, reply } = await loopProbe(pod);
    assert.ok(seen <= 4, `the query came back ${seen} times`);
    assert.equal(reply.status, "SERVFAIL", reply.raw);
  }
  assert.deepEqual(dataOf(await dig(pod, `@${GATEWAY}`, "web")), [world.web.address(NETWORK)]);
});

test("a node's own name and its neighbours' names have their address families, and no data for the other (K48)", async () => {
  await createNetwork(world.engine, "six", { ipv6: true });
  await using both = await runContainer(world.engine, { name: "both", networks: ["six"] });
  await using node = await world.node("named", { networks: [NETWORK, "six"] });
  const instance = await world.sharedWith();
  const { advertised } = await waitForWorkingNode(instance, node.name);
  const server = `@${advertised[0]}`;
  await using pod = await startPod(node);
  const info = await node.container.inspect();
  const query = async (name: string, type: string): Promise<[string, ...string[]]> => {
    const reply = await dig(pod, server, name, type);
    return [reply.status, ...dataOf(reply).toSorted()];
  };
  const networks = Object.values(info.NetworkSettings.Networks);
  const own = new Set(networks.map(({ IPAddress }) => IPAddress).filter((address) => address !== ""));
  const found = await query("named", "A");
  assert.equal(found[0], "NOERROR");
  assert.ok(found.slice(1).length > 0 && found.slice(1).every((address) => own.has(address)), found.join());
  assert.deepEqual(await query("both", "A"), ["NOERROR", both.address("six")]);
  assert.deepEqual(await query("both", "AAAA"), ["NOERROR", both.address6("six")]);
  assert.deepEqual(await query("web", "A"), ["NOERROR", world.web.address(NETWORK)]);
  assert.deepEqual(await query("web", "AAAA"), ["NOERROR"]);
  assert.deepEqual(await query("nobody-there", "A"), ["NXDOMAIN"]);
});

test("a change of the host's resolv.conf changes the upstreams of pods at once (K49)", async () => {
  await using second = await startUpstream(world.engine, { address: "10.53.0.3" });
  await using node = await world.node("following");
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  let count = 0;
  const isQueried = async (): Promise<boolean> => {
    const name = `n${(count += 1)}.ok.test`;
    await dig(pod, `@${GATEWAY}`, name, "+time=1");
    return (await second.queriesFor(name)).length > 0;
  };
  assert.equal(await isQueried(), false);
  const write = async (address: string): Promise<void> => {
    const script = `echo nameserver ${address} > /etc/resolv.conf`;
    const args = ["--target", String(world.engine.hostPid), "--mount", "--", "sh", "-ceu", script];
    const { code, stderr } = await world.engine.exec("nsenter", args);
    assert.equal(code, 0, stderr);
  };
  await write(second.address);
  await waitFor("the other server to be queried", async () => ((await isQueried()) ? true : undefined));
  await write(world.upstream.address);
  await waitFor("the first server to be queried", async () => ((await isQueried()) ? undefined : true));
});
