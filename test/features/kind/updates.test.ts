/**
 * Rules that change under load: a pod sends queries all the time, while networks come and go, settings are reloaded, conntrack is
 * flushed, or KIND rewrites Docker's rules and the node's resolv.conf.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { createNetwork } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import type { Dns11 } from "../../support/program/dns11.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  GATEWAY,
  type KindEnvironment,
  ownTables,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { outcomesOf, QueryLoop } from "../../support/client/query-loop.ts";
import { pause, untilSame, waitFor } from "../../support/rig/wait.ts";

const MODES = ["listener", "loopback"] as const;
/** How long a pod queries before and after the events. */
const LONGER_MS = 500;
const LITERAL = "192.0.2.99";
/** Each update takes dockerd 0.2 s. */
const UPDATES = 20;
const RELOADS = 40;
/** New ones, each from a socket of its own. */
const PER_SECOND = 100;

let world: KindEnvironment;

before(async () => (world = await startKindEnvironment()));
after(async () => await world[Symbol.asyncDispose]());

/** The rules without the parts that differ for each attachment. */
async function shapeOf(node: KindNode): Promise<string[]> {
  const tables = await ownTables(node.netnsPath);
  return tables.map((table) =>
    table.replaceAll(/:\d+|\b(dport|sport) \d+|zone set \d+|meta mark \w+|# progname.*/g, "$1"),
  );
}

test(`${RELOADS} reloads, faster than they are applied, leave one table with the same rules (K21)`, async () => {
  await using node = await world.node("reread");
  const settings = world.settings("ip: gateway");
  await using instance = await world.serveWith(settings);
  await waitForWorkingNode(instance, node.name);
  const earlier = await shapeOf(node);
  assert.equal(earlier.length, new Set(earlier.map((table) => table.slice(0, 10))).size);
  for (let count = 0; count < RELOADS; count++) {
    settings.write(count % 2 === 0 ? "ip: gateway, mode: loopback" : "ip: gateway");
    instance.kill("SIGHUP");
    await pause(5);
  }
  await waitFor("the last settings to be applied", async () => {
    const { node: report, state } = (await instance.container(node.name)) ?? {};
    return state === "attached" && report?.mode === "listener" && report.state === "working" ? true : undefined;
  });
  // These may be earlier settings, with more reloads pending.
  await using pod = await startPod(node);
  await waitFor("the pod to be answered", async () =>
    isDeepStrictEqual(await world.webFrom(pod, GATEWAY), world.found) ? true : undefined,
  );
  await untilSame("the rules of the last settings", async () => await shapeOf(node), earlier);
  await waitForWorkingNode(instance, node.name);
});

/** Changes of rules in a namespace, as nft reports them: each line names the process. */
async function monitorRules(node: KindNode): Promise<{ readonly end: () => Promise<string> }> {
  let stop = (): void => undefined;
  const until = new Promise<void>((resolve) => (stop = resolve));
  let seen = "";
  const monitored = node.enter("sh", ["-c", "nft monitor & cat; kill $!"], {
    until,
    onOutput: (text) => (seen += text),
  });
  // It listens some time after its start.
  await waitFor("nft to report changes", async () => {
    for (const verb of ["add", "delete"]) await checkIn(node.netnsPath, "nft", [verb, "table", "ip", "marker"]);
    return seen.includes("marker") ? true : undefined;
  });
  return {
    end: async () => {
      stop();
      return (await monitored).stdout;
    },
  };
}

for (const mode of MODES) {
  test(`${mode}: a pod with ${PER_SECOND} queries a second loses no answer while rules are replaced ${UPDATES} times (K22)`, async () => {
    await using node = await world.node(`updated-${mode}`);
    const other = `other-${mode}`;
    await createNetwork(world.engine, other);
    const instance = await world.sharedWith(`mode: ${mode}`);
    await waitForNode(instance, node.name, (report) => report.mode === mode && report.state === "working");
    await using pod = await startPod(node);
    const monitor = await monitorRules(node);
    await using queries = await QueryLoop.start(pod, { server: GATEWAY, name: "web", perSecond: PER_SECOND });
    for (let change = 0; change < UPDATES; change++) {
      const isOn = change % 2 === 0;
      await world.engine.docker("network", isOn ? "connect" : "disconnect", other, node.container.id);
      // Changes that follow each other at once may be one for dns11.
      await waitFor("dns11 to see the change", async () =>
        (await instance.container(node.name))?.networks.includes(other) === isOn ? true : undefined,
      );
    }
    await waitForWorkingNode(instance, node.name);
    assert.deepEqual(Object.keys(outcomesOf(await queries.stop())), ["NOERROR"]);
    // nft names the thread, one of a pool.
    const threads = new Set(readdirSync(`/proc/${instance.pid}/task`));
    const changes = [...(await monitor.end()).matchAll(/by process (\d+) /g)];
    const generations = changes.filter(([, thread = ""]) => threads.has(thread)).length;
    assert.ok(generations >= UPDATES / 2, `${generations} of ${UPDATES}`);
  });
}

test(`a pod with ${PER_SECOND} queries a second loses no answer while settings change the address (K22)`, async () => {
  const instance = await world.sharedWith("ip: gateway");
  await using node = await world.node("resettled");
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  await using queries = await QueryLoop.start(pod, { server: GATEWAY, name: "web", perSecond: PER_SECOND });
  for (let count = 0; count < 6; count++) {
    const ip = count % 2 === 0 ? LITERAL : GATEWAY;
    await world.sharedWith(count % 2 === 0 ? `ip: ${LITERAL}` : "ip: gateway");
    await waitForNode(instance, node.name, ({ state, advertised }) => state === "working" && advertised.includes(ip));
    await pause(200);
  }
  const outcomes = outcomesOf(await queries.stop());
  assert.deepEqual(Object.keys(outcomes), ["NOERROR"], JSON.stringify(outcomes));
});

for (const mode of MODES) {
  test(`${mode}: a late reply reaches its pod although conntrack was flushed meanwhile (K25)`, async () => {
    await using node = await world.node(`flushed-${mode}`);
    const instance = await world.sharedWith(`mode: ${mode}`);
    await waitForNode(instance, node.name, (report) => report.mode === mode && report.state === "working");
    const replies = (await ownTables(node.netnsPath))
      .join("")
      .split("\n")
      .filter((line) => /\bsnat\b/.test(line));
    assert.ok(replies.length > 0);
    for (const line of replies) assert.doesNotMatch(line, /daddr/);
    await using ptp = await startPod(node);
    await using bridged = await startPod(node, { cni: "bridge" });
    for (const [cni, pod] of Object.entries({ ptp, bridged })) {
      let tries = 0;
      // On a busy machine a reply may come after the time that a node has for it.
      await waitFor("a reply that was under way when the connections were forgotten", async () => {
        const name = `${cni}-${mode}-${(tries += 1)}.800.slow.test`;
        const queries = dig(pod, `@${GATEWAY}`, name);
        await waitFor("the query", async () => ((await world.upstream.queriesFor(name)).length > 0 ? true : undefined));
        await checkIn(node.netnsPath, "conntrack", ["-F"]);
        return (await queries).status === "NOERROR" ? true : undefined;
      });
      assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
    }
  });
}

/** Node and pods resolve names, also at 127.0.0.11, which KIND alone breaks. */
async function assertServed(node: KindNode): Promise<void> {
  await using pod = await startPod(node);
  // It appears twice if KIND's entrypoint copied the file while dns11 wrote it.
  assert.deepEqual(new Set(pod.nameservers), new Set([GATEWAY]));
  assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  for (const server of [GATEWAY, "127.0.0.11"])
    assert.deepEqual(await world.webFrom(node, server), world.found, server);
}

/** The state that KIND alone leaves, with Docker's resolver behind its rules. */
async function assertLikeKindAlone(node: KindNode): Promise<void> {
  assert.match(await node.resolvConf(), /^nameserver 10\.77\.0\.1$/m);
  await using pod = await startPod(node);
  for (const place of [pod, node]) assert.deepEqual(await world.webFrom(place, GATEWAY), world.found);
}

for (const [how, end] of Object.entries<(instance: Dns11) => Promise<void>>({
  SIGTERM: async (instance) => assert.equal(await instance.stop(), 0),
  SIGKILL: async (instance) => {
    instance.kill("SIGKILL");
    await instance.exited;
  },
})) {
  test(`KIND's rewrite before dns11 starts changes nothing for node and pods, and is what remains after ${how} (K26)`, async () => {
    await world.endShared();
    await using node = await world.node(`rewritten-before-${how.toLowerCase()}`, { entrypoint: "kind" });
    await node.waitForEntrypoint();
    await using instance = await world.serve();
    await waitForWorkingNode(instance, node.name);
    await assertServed(node);
    await end(instance);
    // After SIGKILL the kernel removes the rules.
    await waitFor("dns11's rules to be gone", async () =>
      (await ownTables(node.netnsPath)).length === 0 ? true : undefined,
    );
    await assertLikeKindAlone(node);
  });
}

test("KIND's rewrite while a pod sends queries loses no answer, and is what remains afterwards (K26)", async () => {
  await using node = await world.node("rewritten-after");
  await using instance = await world.serve();
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  await using queries = await QueryLoop.start(pod, { server: GATEWAY, name: "web", perSecond: PER_SECOND });
  await node.rewrite();
  await node.setSysctl("net.ipv4.conf.all.route_localnet", 1);
  await pause(LONGER_MS);
  assert.deepEqual(Object.keys(outcomesOf(await queries.stop())), ["NOERROR"]);
  await assertServed(node);
  assert.equal(await instance.stop(), 0);
  await assertLikeKindAlone(node);
});

test("a node that starts while dns11 runs is served, whenever its entrypoint rewrites, and is left as KIND leaves it (K26)", async () => {
  const instance = await world.serve();
  await using _ = instance;
  const nodes: KindNode[] = [];
  for (let count = 0; count < 4; count++) {
    nodes.push(await world.node(`rewritten-during-${count}`, { entrypoint: "kind" }));
  }
  for (const node of nodes) {
    await node.waitForEntrypoint();
    await waitForWorkingNode(instance, node.name);
    await assertServed(node);
  }
  // Its own name, which a real entrypoint looks up.
  assert.deepEqual(dataOf(await dig(nodes[0] as KindNode, nodes[0]?.name ?? "")).length, 1);
  assert.equal(await instance.stop(), 0);
  for (const node of nodes) {
    await assertLikeKindAlone(node);
    await node[Symbol.asyncDispose]();
  }
});
