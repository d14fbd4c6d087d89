/**
 * What a node is when something is wrong, and when we are gone: trouble is told by name, and every end, a good one and
 * SIGKILL with a cleanup, leaves the node as it was.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import type { CommandResult } from "../support/program/command.ts";
import { createNetwork } from "../support/engine/container.ts";
import { dns11, type Dns11 } from "../support/program/dns11.ts";
import type { KindNode } from "../support/kind/kind-node.ts";
import {
  addressesOnLo,
  GATEWAY,
  type KindWorld,
  ownTables,
  routeLocalnet,
  rulesOfOthers,
  startKindWorld,
  waitForNode,
  waitForWorkingNode,
} from "../support/kind/kind-world.ts";
import { type Pod, startPod } from "../support/kind/pod.ts";
import { checkIn } from "../support/kind/pod-host.ts";
import { pause, waitFor } from "../support/rig/wait.ts";

const WAYS = ["listener", "loopback"] as const;

let world: KindWorld;

before(async () => {
  world = await startKindWorld();
  await createNetwork(world.engine, "touched");
});
after(async () => await world[Symbol.asyncDispose]());

/** It asks as a pod when the node's networks change, and else from time to time. */
async function touchNetworks({ container }: KindNode): Promise<void> {
  await container.connect("touched");
  await container.disconnect("touched");
}

const DROP_PODS = ["PREROUTING", "!", "-i", "lo", "-p", "udp", "--dport", "53", "-j", "DROP"];

/** Drops pods' questions by UDP, or lets them through again. */
async function setDropped(node: KindNode, isDropped: boolean): Promise<void> {
  await checkIn(node.netnsPath, "iptables-nft", ["-t", "raw", isDropped ? "-A" : "-D", ...DROP_PODS]);
  await touchNetworks(node);
}

test("where pods' questions are dropped and the node's are not the node is degraded, and says that pods cannot ask (K50, K51)", async () => {
  for (const way of WAYS) {
    await using node = await world.node(`dropping-${way}`);
    await using instance = await world.serve(["--kind-mode", way]);
    await waitForWorkingNode(instance, node.name);
    await using pod = await startPod(node);
    await setDropped(node, true);
    const report = await waitForNode(instance, node.name, ({ state }) => state === "degraded");
    assert.match(report.reasons.join(), /a pod cannot ask 10\.77\.0\.1: udp/);
    assert.doesNotMatch(report.reasons.join(), /the node itself/);
    const [udp, tcp] = await world.webFrom(pod, GATEWAY);
    assert.deepEqual([udp, tcp], [[], world.found[1]]);
    await setDropped(node, false);
    await waitForWorkingNode(instance, node.name);
    assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  }
});

/** Everything in a node, and on the machine, that asking as a pod could leave behind. */
async function tracesOf(node: KindNode): Promise<unknown> {
  const { netnsPath } = node;
  const tracked = await checkIn(netnsPath, "conntrack", ["-L"]);
  return {
    links: await checkIn(netnsPath, "ip", ["-brief", "link"]),
    addresses: await checkIn(netnsPath, "ip", ["-brief", "address"]),
    routes: await checkIn(netnsPath, "ip", ["route", "show", "table", "all"]),
    tracked: tracked.split("\n").filter((line) => line.includes("169.254.54.")),
  };
}

function namespacesOf({ pid }: Dns11): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((fd) => {
    try {
      const link = readlinkSync(`${folder}/${fd}`);
      return link.startsWith("net:") || link.includes("/netns/") ? [link] : [];
    } catch {
      return [];
    }
  });
}

test("asking as a pod leaves no link, address, route, namespace or memory of connections behind (K51)", async () => {
  await using node = await world.node("probed");
  await using instance = await world.serve();
  await waitForWorkingNode(instance, node.name);
  // The first pod's link goes when the kernel finds the time.
  await waitFor("the first pod to be gone", async () =>
    JSON.stringify(await tracesOf(node)).includes("dns11-pod") ? undefined : true,
  );
  const [traces, held] = [await tracesOf(node), namespacesOf(instance)];
  const { lastProbe } = await waitForWorkingNode(instance, node.name);
  // One that has failed asks again each time it is looked at.
  for (let count = 0; count < 2; count++) {
    await setDropped(node, true);
    await waitForNode(instance, node.name, ({ state }) => state === "degraded");
    await setDropped(node, false);
    await waitForWorkingNode(instance, node.name);
  }
  assert.notEqual((await waitForWorkingNode(instance, node.name)).lastProbe, lastProbe);
  await waitFor("nothing to be left of them", async () =>
    isDeepStrictEqual(await tracesOf(node), traces) ? true : undefined,
  );
  await waitFor("their namespaces to be let go", () =>
    isDeepStrictEqual(namespacesOf(instance), held) ? true : undefined,
  );
});

/** All of a node that dns11 changes. */
async function stateOf(node: KindNode): Promise<unknown> {
  const { netnsPath } = node;
  return {
    resolvConf: await node.resolvConf(),
    ours: await ownTables(netnsPath),
    others: await rulesOfOthers(netnsPath),
    lo: await addressesOnLo(netnsPath),
    routeLocalnet: await routeLocalnet(netnsPath),
    links: await checkIn(netnsPath, "ip", ["-brief", "link"]),
  };
}

/** A pod whose questions of before nobody remembers: they are refused as they were before us. */
async function assertGone(node: KindNode, pod: Pod): Promise<void> {
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
  assert.deepEqual((await world.webFrom(pod, GATEWAY)).flat(), []);
}

const ENDS: Readonly<Record<string, (instance: Dns11) => Promise<void>>> = {
  "SIGTERM (K52)": async (instance) => {
    assert.equal(await instance.stop(), 0);
  },
  "SIGKILL and `dns11 cleanup` (K53)": async (instance) => {
    instance.kill("SIGKILL");
    await instance.exited;
    const result = await dns11(["cleanup", "-H", world.engine.host, "--state-dir", instance.stateDir]);
    assert.equal(result.code, 0, result.stderr);
  },
  "SIGKILL, a new start and SIGTERM (K53)": async (instance) => {
    instance.kill("SIGKILL");
    await instance.exited;
    await using next = await world.serve(["--kind-mode", "listener"], { stateDir: instance.stateDir });
    assert.equal(await next.stop(), 0);
  },
  "SIGKILL, and a new start that knows of no nodes (K53)": async (instance) => {
    instance.kill("SIGKILL");
    await instance.exited;
    const settings = world.settings("nodes: []");
    await using next = await world.serveWith(settings, { stateDir: instance.stateDir });
    assert.equal(await next.stop(), 0);
  },
};

for (const way of WAYS) {
  for (const [how, end] of Object.entries(ENDS)) {
    test(`${way}: the node is as it was, to the byte, after ${how}`, async () => {
      await using node = await world.node("left");
      await using first = await startPod(node);
      const earlier = await stateOf(node);
      const instance = await world.serve(["--kind-mode", way, "--kind-ip", "gateway"]);
      await using _ = instance;
      await waitForWorkingNode(instance, node.name);
      assert.notDeepEqual(await stateOf(node), earlier);
      assert.deepEqual(await world.webFrom(first, GATEWAY), world.found);
      await end(instance);
      assert.deepEqual(await stateOf(node), earlier);
      await assertGone(node, first);
    });
  }
}

test("what cannot be undone stays known, so that the next cleanup does it (K53)", async () => {
  await using node = await world.node("stubborn");
  const earlier = await stateOf(node);
  const instance = await world.serve(["--kind-mode", "loopback", "--kind-ip", "gateway"]);
  await using _ = instance;
  await waitForWorkingNode(instance, node.name);
  instance.kill("SIGKILL");
  await instance.exited;
  const cleanup = async (): Promise<CommandResult> =>
    await dns11(["cleanup", "-H", world.engine.host, "--state-dir", instance.stateDir]);
  const [engineFolder = ""] = readdirSync(instance.stateDir);
  const path = join(instance.stateDir, engineFolder, "nodes", `${node.container.id}.json`);
  const record = readFileSync(path, "utf8");
  // A namespace that cannot be proven to be the node's is not touched.
  const other = { ...(JSON.parse(record) as object), sandboxKey: "/run/docker/netns/nobody", pid: 1 };
  for (const [text, why] of [
    [JSON.stringify(other), /^stubborn: failed: /m],
    ["{", /\.json" is left out: /],
  ] as const) {
    writeFileSync(path, text);
    const { code, stderr } = await cleanup();
    assert.deepEqual([code, why.test(stderr)], [1, true], stderr);
    assert.equal(readFileSync(path, "utf8"), text);
  }
  writeFileSync(path, record);
  assert.equal((await cleanup()).code, 0);
  assert.deepEqual(await stateOf(node), earlier);
  assert.deepEqual(readdirSync(instance.stateDir), []);
});

test("a node that is no node any more by other settings is as it was, and a container like any other (K52)", async () => {
  await using node = await world.node("retired");
  const earlier = await stateOf(node);
  const settings = world.settings("");
  await using instance = await world.serveWith(settings);
  await waitForWorkingNode(instance, node.name);
  await settings.reload(instance, "nodes: []");
  await waitFor("the node to be a container", async () => {
    const status = await instance.container(node.name);
    return status?.state === "attached" && status.node === undefined ? true : undefined;
  });
  const ours = (await ownTables(node.netnsPath)).join("");
  assert.doesNotMatch(ours, /prerouting|ip6/);
  assert.deepEqual({ ...((await stateOf(node)) as object), ours: [] }, earlier);
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
});

test("nodes that vanish at any moment leave no error in the log and no namespace in our hands (K54)", async () => {
  await using instance = await world.serve();
  await pause(300);
  const held = namespacesOf(instance);
  for (let count = 0; count < 8; count++) {
    const node = await world.node(`vanishing-${count}`);
    // Before, while and after it is attached and asked as a pod.
    await pause(count * 40);
    await node[Symbol.asyncDispose]();
  }
  await waitFor("all of them to be forgotten", async () => {
    const { containers } = await instance.status();
    return containers.every(({ name }) => !name.startsWith("vanishing")) ? true : undefined;
  });
  await waitFor("their namespaces to be let go", () =>
    namespacesOf(instance).length <= held.length ? true : undefined,
  );
  const loud = instance.log.split("\n").filter((line) => /"level":"(warn|error|fatal)"/.test(line));
  assert.deepEqual(loud, []);
});
