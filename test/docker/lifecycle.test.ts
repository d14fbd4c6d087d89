/**
 * Lifecycle: engine restarts, lost events and shared namespaces: the set of served containers stays correct.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { waitFor } from "../support/rig/wait.ts";

let engine: Engine;
let dns11: Dns11;
let web: Container;
let client: Container;

before(async () => {
  engine = await startEngine({ suite: "bookworm", liveRestore: true });
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  client = await runContainer(engine, { name: "client", networks: ["n1"] });
  dns11 = await startDns11(engine);
});
after(async () => {
  await dns11[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function untilConnected(isConnected: boolean): Promise<void> {
  await waitFor(`the engine to be ${isConnected ? "connected" : "disconnected"}`, async () =>
    (await dns11.status()).engine?.isConnected === isConnected ? true : undefined,
  );
}

test("while dockerd is down, the last known names are still answered", async () => {
  await engine.kill("SIGKILL");
  await untilConnected(false);
  const reply = await dig(client, "web");
  assert.deepEqual(dataOf(reply), [web.address("n1")]);
  assert.equal(reply.answer[0]?.ttl, 5, "dns11 answered");
  await dns11.logs(/lost the connection to the engine/);
});

test("after a restart of dockerd, dns11 reconnects and catches up with changes", async () => {
  // The container's shim outlives dockerd, and exits with the container.
  process.kill(web.pid, "SIGKILL");
  await engine.startDaemon();
  await untilConnected(true);
  await waitFor("web to be gone", async () => ((await dns11.container("web")) === undefined ? true : undefined));
  await web.start();
  await dns11.waitFor("web", "attached");
  assert.deepEqual(dataOf(await dig(client, "web")), [web.address("n1")]);
  await dns11.waitFor("client", "attached");
});

test("a container that restarts is served in its new namespace", async () => {
  const old = (await dns11.container("web"))?.namespace;
  await web.restart();
  const now = await waitFor("web in another namespace", async () => {
    const status = await dns11.container("web");
    return status?.state === "attached" && status.namespace !== old ? status : undefined;
  });
  assert.notEqual(now.ports, undefined);
  assert.deepEqual(dataOf(await dig(web, "client")), [client.address("n1")]);
});

test("a container that shares another's namespace is served with it, once", async () => {
  await using joiner = await runContainer(engine, { name: "joiner", args: ["--network", "container:client"] });
  const status = await dns11.waitFor("joiner", "skipped");
  assert.equal(status.code, "shares-namespace");
  assert.deepEqual(dataOf(await dig(joiner, "web")), [web.address("n1")]);
});

test("a running container is served while it is on a user-defined network", async () => {
  await using late = await runContainer(engine, { name: "late" });
  const status = await dns11.waitFor("late", "skipped");
  assert.equal(status.code, "default-network-only");
  await late.connect("n1");
  await dns11.waitFor("late", "attached");
  assert.deepEqual(dataOf(await dig(late, "web")), [web.address("n1")]);
  await late.disconnect("n1");
  await dns11.waitFor("late", "skipped");
  // Queries in flight are answered first.
  await waitFor("the rules of dns11 to be removed", async () =>
    (await late.enter("nft", ["list", "ruleset"])).stdout.includes("dns11") ? undefined : true,
  );
});

test("a paused container is attached like any other", async () => {
  const paused = await runContainer(engine, { name: "paused", networks: ["n1"] });
  await dns11.waitFor("paused", "attached");
  await engine.docker("pause", "paused");
  await waitFor("the pause to be noticed", async () =>
    (await dns11.container("paused"))?.isPaused === true ? true : undefined,
  );
  await dns11.waitFor("paused", "attached");
  await engine.docker("unpause", "paused");
  await paused.remove();
});

test("after many concurrent starts and removals, exactly the running containers are attached", async () => {
  const names = Array.from({ length: 8 }, (_, index) => `many${index}`);
  const containers = await Promise.all(
    names.map(async (name) => await runContainer(engine, { name, networks: ["n1"] })),
  );
  await Promise.all(containers.slice(0, 4).map(async (container) => await container.remove()));
  await waitFor("all to be settled", async () => {
    const { containers: listed } = await dns11.status();
    const attached = listed.filter(({ name, state }) => name.startsWith("many") && state === "attached");
    const all = listed.filter(({ name }) => name.startsWith("many"));
    return attached.length === 4 && all.length === 4 ? true : undefined;
  });
  for (const container of containers.slice(4)) {
    assert.deepEqual(dataOf(await dig(client, container.name)), [container.address("n1")]);
  }
  await Promise.all(containers.slice(4).map(async (container) => await container.remove()));
});

test("SIGTERM leaves no rules in any namespace, and Docker's resolver answers again", async () => {
  assert.equal(await dns11.stop(), 0);
  for (const container of [web, client]) {
    assert.doesNotMatch((await container.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
    assert.equal((await dig(container, "client")).answer[0]?.ttl, 600);
  }
});
