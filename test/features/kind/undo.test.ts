/**
 * Failures are reported with their cause, and every end of dns11, graceful or by SIGKILL with a cleanup, restores the node.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import type { CommandResult } from "../../support/program/command.ts";
import { createNetwork } from "../../support/engine/container.ts";
import { dns11, type Dns11 } from "../../support/program/dns11.ts";
import { type End, killedAndCleanedUp, stopped } from "../../support/kind/ends.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  addressesOnLo,
  GATEWAY,
  type KindEnvironment,
  ownTables,
  routeLocalnet,
  rulesByOwner,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { type Pod, startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { pause, untilSame, waitFor } from "../../support/rig/wait.ts";

const MODES = ["listener", "loopback"] as const;

let world: KindEnvironment;

before(async () => {
  world = await startKindEnvironment({ suite: "forky", withKeeper: true });
  await createNetwork(world.engine, "touched");
});
after(async () => await world[Symbol.asyncDispose]());

/** A change of networks makes dns11 probe as a pod at once. Two that it sees as one are none. */
async function touchNetworks(instance: Dns11, { name, container }: KindNode): Promise<void> {
  const untilSeen = async (isConnected: boolean): Promise<void> => {
    await waitFor("the change of networks", async () =>
      (await instance.container(name))?.networks.includes("touched") === isConnected ? true : undefined,
    );
  };
  await container.connect("touched");
  await untilSeen(true);
  await container.disconnect("touched");
  await untilSeen(false);
}

const DROP_PODS = ["PREROUTING", "!", "-i", "lo", "-p", "udp", "--dport", "53", "-j", "DROP"];

/** Drops pods' UDP queries, or accepts them again. */
async function setDropped(instance: Dns11, node: KindNode, isDropped: boolean): Promise<void> {
  await checkIn(node.netnsPath, "iptables-nft", ["-t", "raw", isDropped ? "-A" : "-D", ...DROP_PODS]);
  await touchNetworks(instance, node);
}

test("if only pods' queries are dropped, the node is degraded and the reason says so (K50, K51)", async () => {
  for (const mode of MODES) {
    await using node = await world.node(`dropping-${mode}`);
    const instance = await world.sharedWith(`mode: ${mode}`);
    await waitForNode(instance, node.name, (report) => report.mode === mode && report.state === "working");
    await using pod = await startPod(node);
    await setDropped(instance, node, true);
    const report = await waitForNode(instance, node.name, ({ state }) => state === "degraded");
    assert.match(report.reasons.join(), /a pod cannot query 10\.77\.0\.1: udp/);
    assert.doesNotMatch(report.reasons.join(), /the node cannot query/);
    const [udp, tcp] = await world.webFrom(pod, GATEWAY);
    assert.deepEqual([udp, tcp], [[], world.found[1]]);
    await setDropped(instance, node, false);
    await waitForWorkingNode(instance, node.name);
    assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  }
});

/** Everything in a node that a probe from a test pod could leave behind. */
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

test("a probe from a test pod leaves no link, address, route, namespace or conntrack entry behind (K51)", async () => {
  await using node = await world.node("probed");
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  // The kernel removes the first pod's link some time later.
  await waitFor("the first pod to be gone", async () =>
    JSON.stringify(await tracesOf(node)).includes("dns11-pod") ? undefined : true,
  );
  const [traces, held] = [await tracesOf(node), namespacesOf(instance)];
  const { lastProbe } = await waitForWorkingNode(instance, node.name);
  // After a failure each verification probes again.
  for (let count = 0; count < 2; count++) {
    await setDropped(instance, node, true);
    await waitForNode(instance, node.name, ({ state }) => state === "degraded");
    await setDropped(instance, node, false);
    await waitForWorkingNode(instance, node.name);
  }
  assert.notEqual((await waitForWorkingNode(instance, node.name)).lastProbe, lastProbe);
  await untilSame("nothing to be left of them", async () => await tracesOf(node), traces);
  await waitFor("their namespaces to be released", () =>
    isDeepStrictEqual(namespacesOf(instance), held) ? true : undefined,
  );
});

/** Everything in a node that dns11 changes. */
async function stateOf(node: KindNode): Promise<unknown> {
  const { netnsPath } = node;
  return {
    resolvConf: await node.resolvConf(),
    ...(await rulesByOwner(netnsPath)),
    lo: await addressesOnLo(netnsPath),
    routeLocalnet: await routeLocalnet(netnsPath),
    links: await checkIn(netnsPath, "ip", ["-brief", "link"]),
  };
}

/** The pod's conntrack entries are gone: its queries are refused as without dns11. */
async function assertGone(node: KindNode, pod: Pod): Promise<void> {
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
  assert.deepEqual((await world.webFrom(pod, GATEWAY, 2)).flat(), []);
}

const ENDS: Readonly<Record<string, End>> = {
  "SIGTERM (K52)": stopped,
  "SIGKILL and `dns11 cleanup` (K53)": killedAndCleanedUp,
};

/** With more to undo than in kind mode listener, and in the mode that is not the new one's. */
const ENDS_OF_LOOPBACK: Readonly<Record<string, End>> = {
  "SIGKILL, a new start and SIGTERM (K53)": async (instance) => {
    instance.kill("SIGKILL");
    await instance.exited;
    await using next = await world.serve({ "kind.mode": "listener" }, { stateDir: instance.stateDir });
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

for (const mode of MODES) {
  const ends = mode === "loopback" ? { ...ENDS, ...ENDS_OF_LOOPBACK } : ENDS;
  for (const [how, end] of Object.entries(ends)) {
    test(`${mode}: the node is restored to the byte after ${how}`, async () => {
      await world.endShared();
      await using node = await world.node("left");
      await using first = await startPod(node);
      const earlier = await stateOf(node);
      const instance = await world.serve({ "kind.mode": mode, "kind.ip": "gateway" });
      await using _ = instance;
      await waitForWorkingNode(instance, node.name);
      assert.notDeepEqual(await stateOf(node), earlier);
      assert.deepEqual(await world.webFrom(first, GATEWAY), world.found);
      await end(instance, world);
      await untilSame("the node to be as it was", async () => await stateOf(node), earlier);
      await assertGone(node, first);
    });
  }
}

test("a record that cannot be undone is kept for the next cleanup (K53)", async () => {
  await world.endShared();
  await using node = await world.node("stubborn");
  const earlier = await stateOf(node);
  const instance = await world.serve({ "kind.mode": "loopback", "kind.ip": "gateway" });
  await using _ = instance;
  await waitForWorkingNode(instance, node.name);
  instance.kill("SIGKILL");
  await instance.exited;
  const cleanup = async (): Promise<CommandResult> =>
    await dns11(["cleanup", "-H", world.engine.host, "--state-dir", instance.stateDir]);
  const [engineFolder = ""] = readdirSync(instance.stateDir);
  const path = join(instance.stateDir, engineFolder, "nodes", `${node.container.id}.json`);
  const record = readFileSync(path, "utf8");
  // A namespace that is not proven to be the node's is not touched.
  const other = { ...(JSON.parse(record) as object), sandboxKey: "/run/docker/netns/nobody", pid: 1 };
  for (const [text, why] of [
    [JSON.stringify(other), /^stubborn: failed: /m],
    ["{", /ignored the damaged record .*\.json": /],
  ] as const) {
    writeFileSync(path, text);
    const { code, stderr } = await cleanup();
    assert.deepEqual([code, why.test(stderr)], [1, true], stderr);
    assert.equal(readFileSync(path, "utf8"), text);
  }
  writeFileSync(path, record);
  assert.equal((await cleanup()).code, 0);
  await untilSame("the node to be as it was", async () => await stateOf(node), earlier);
  assert.deepEqual(readdirSync(instance.stateDir), []);
});

test("a node deselected by new settings is restored, and served like any other container (K52)", async () => {
  await world.sharedWith("nodes: []");
  await using node = await world.node("retired");
  await world.sharedWith("nodes: []");
  const earlier = { ...((await stateOf(node)) as object), ours: [] };
  const instance = await world.sharedWith();
  await waitForWorkingNode(instance, node.name);
  await world.sharedWith("nodes: []");
  await waitFor("the node to be a container", async () => {
    const status = await instance.container(node.name);
    return status?.state === "attached" && status.node === undefined ? true : undefined;
  });
  const ours = (await ownTables(node.netnsPath)).join("");
  assert.doesNotMatch(ours, /prerouting|ip6/);
  const now = async (): Promise<object> => ({ ...((await stateOf(node)) as object), ours: [] });
  await untilSame("the node to be as it was", now, earlier);
  assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
});

test("nodes that vanish at any moment cause no error in the log and leave no namespace open (K54)", async () => {
  const instance = await world.sharedWith();
  const [held, log] = [namespacesOf(instance), instance.log];
  for (let count = 0; count < 8; count++) {
    const node = await world.node(`vanishing-${count}`);
    // Before, during and after the attach and the probe from a pod.
    await pause(count * 40);
    await node[Symbol.asyncDispose]();
  }
  await waitFor("all of them to be forgotten", async () => {
    const { containers } = await instance.status();
    return containers.every(({ name }) => !name.startsWith("vanishing")) ? true : undefined;
  });
  await waitFor("their namespaces to be released", () =>
    namespacesOf(instance).length <= held.length ? true : undefined,
  );
  const lines = instance.log.slice(log.length).split("\n");
  // One that ends while it is attached is such a warning: its namespace is gone a moment before its event.
  const loud = lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line) && !/"NAMESPACE_GONE"/.test(line));
  assert.deepEqual(loud, []);
});
