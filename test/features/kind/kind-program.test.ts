/**
 * Clusters that KIND's own program makes: its containers, labels, flags and networks, several nodes at once, for both address families. They
 * are served as they start, after a restart, and without a trace when KIND deletes them. What kubeadm does there is missing.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { NETWORK, ownTables, waitForNode, waitForWorkingNode } from "../../support/kind/kind-environment.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import { KindProgram } from "../../support/kind/kind-program.ts";
import { type Pod, startPod } from "../../support/kind/pod.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const UPSTREAM = "10.53.0.1";

let engine: Engine;
let upstream: Upstream;
let kind: KindProgram;
let instance: Dns11;
let web: Container;
let said = "";

before(async () => {
  engine = await startEngine({ suite: "forky", resolvConf: `nameserver ${UPSTREAM}\n` });
  kind = await KindProgram.on(engine);
  upstream = await startUpstream(engine, { address: UPSTREAM });
  instance = await startDns11(engine, {
    args: ["--kind", "auto"],
    settings: { "kind.families": "both" },
    env: { DNS11_KEEPER: "off" },
  });
  // dns11 is there first: it serves the nodes while their entrypoints still change their rules and files.
  said = await kind.create("one", ["control-plane", "worker", "worker"]);
  web = await runContainer(engine, { name: "web", networks: [NETWORK] });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** From a pod of the node, at each of the nameservers that it got. The entrypoint's text, which dns11 completes, has IPv4 alone. */
async function assertResolves(node: KindNode): Promise<void> {
  await waitFor(`both address families in the file of ${node.name}`, async () =>
    /^nameserver [\d.]+$/m.test(await node.resolvConf()) && /^nameserver \S*:/m.test(await node.resolvConf())
      ? true
      : undefined,
  );
  await using pod = await startPod(node, { family: "dual" });
  const servers = pod.nameservers;
  assert.deepEqual(new Set(servers.map((server) => isIP(server))), new Set([4, 6]), pod.resolvConf);
  for (const server of servers) await assertAnswers(pod, server);
}

async function assertAnswers(pod: Pod, server: string): Promise<void> {
  const query = async (...words: string[]): Promise<readonly string[]> =>
    dataOf(await dig(pod, `@${server}`, "+time=1", "+tries=30", ...words));
  assert.deepEqual(await query("web"), [web.address(NETWORK)], server);
  assert.deepEqual(await query("web", "AAAA"), [web.address6(NETWORK)], server);
  assert.deepEqual(await query("+tcp", "n5.ok.test"), ["192.0.2.5"], server);
}

test("KIND comes as far as kubeadm: its nodes run, and have its labels and both address families", async () => {
  assert.match(said, /✓ Preparing nodes[^]*✓ Writing configuration[^]*✗ Starting control-plane/, said);
  assert.match(said, /exec: "kubeadm": executable file not found/, said);
  const nodes = await kind.nodes("one");
  assert.deepEqual(nodes.map(({ name }) => name).toSorted(), ["one-control-plane", "one-worker", "one-worker2"]);
  for (const { container } of nodes) {
    const { Config: config } = await container.inspect();
    assert.equal(config.Labels["io.x-k8s.kind.cluster"], "one");
    assert.match(container.address6(NETWORK), /:/);
    assert.equal(await container.readFile("/proc/1/comm"), "systemd\n");
  }
});

test("all of its nodes are served, and their pods resolve containers and outside names by IPv4 and IPv6", async () => {
  for (const node of await kind.nodes("one")) {
    await node.waitForEntrypoint();
    await waitForWorkingNode(instance, node.name);
    await assertResolves(node);
  }
  const where = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { code, stdout } = await dns11(["kind", "doctor", ...where.slice(0, 2)]);
  assert.deepEqual([code, stdout.match(/^one-\S+$/gm)?.length], [0, 3], stdout);
});

test("they are served again after a restart, and another cluster beside them", async () => {
  const starting = kind.create("two", ["control-plane"]);
  const nodes = await kind.nodes("one");
  await Promise.all(nodes.map(async (node) => await node.restart()));
  await starting;
  for (const node of [...nodes, ...(await kind.nodes("two"))]) {
    await node.waitForEntrypoint();
    await waitForNode(instance, node.name, ({ state, advertised }) => state === "working" && advertised.length === 2);
    await assertResolves(node);
  }
});

test("nothing is left of a cluster that KIND deletes, nor in the nodes of another when dns11 stops", async () => {
  await kind.delete("one");
  await waitFor("the nodes to be forgotten", async () =>
    (await instance.status()).containers.some(({ name }) => name.startsWith("one-")) ? undefined : true,
  );
  const [left] = await kind.nodes("two");
  assert.ok(left !== undefined);
  await waitForWorkingNode(instance, left.name);
  await assertResolves(left);
  const [folder = ""] = readdirSync(instance.stateDir);
  const records = join(instance.stateDir, folder, "nodes");
  await waitFor("the records of the others to be gone", () => (readdirSync(records).length === 1 ? true : undefined));
  await instance.stop();
  assert.deepEqual(existsSync(records) ? readdirSync(records) : [], []);
  assert.deepEqual(await ownTables(left.netnsPath), []);
  assert.doesNotMatch(await left.resolvConf(), /169\.254|fd64:/);
  await kind.delete("two");
});
