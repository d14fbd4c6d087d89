// A lab for a project of the real Compose: it covers each replica of a service, those that are added and those that are created
// anew, also one that asks at once and ends, and ends without a trace in the project.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Suite, connect } from "dns11/client";

import { dataOf, dig } from "../../support/client/dig.ts";
import { ComposeProject, runOnHost } from "../../support/engine/compose-project.ts";
import type { Container } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { ensureImage } from "../../support/engine/image.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";

let engine: Engine;
let shop: ComposeProject;
let instance: Dns11;
let dns: Suite;

before(async () => {
  engine = await startEngine();
  shop = await ComposeProject.create(engine, "shop");
  for (const service of ["app", "db", "cache"]) shop.set(service, { init: true, command: ["sleep", "infinity"] });
  await shop.up("--scale", "app=2");
  instance = await startDns11(engine);
  dns = await connect({ engine: engine.host, stateDir: instance.stateDir });
});
after(async () => {
  dns.close();
  await instance[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** What each replica gets for a name, once all of them are served. */
async function resultsOf(name: string): Promise<string[]> {
  const replicas = await shop.containers("app");
  for (const each of replicas) await instance.waitFor(each.name, "attached");
  return await Promise.all(replicas.map(async (each) => await resultOf(each, name)));
}

async function resultOf(container: Container, name: string): Promise<string> {
  const reply = await dig(container, name);
  return dataOf(reply)[0] ?? reply.status;
}

test("a lab for a service covers its replicas, also added ones and those that Compose creates anew", async () => {
  const [db] = await shop.containers("db");
  const [cache] = await shop.containers("cache");
  const address = db?.address("shop_default") ?? "";
  assert.deepEqual(await resultsOf("db"), [address, address]);
  await using lab = await dns.lab({ project: "shop", service: "app" });
  const rule = await lab.fault("db", { servfail: true });
  assert.equal(rule.containers, 2);
  await lab.answer("cache", "192.0.2.9");
  assert.deepEqual(await resultsOf("db"), ["SERVFAIL", "SERVFAIL"]);
  await shop.up("--scale", "app=3");
  assert.deepEqual(await resultsOf("db"), ["SERVFAIL", "SERVFAIL", "SERVFAIL"]);
  await runOnHost(engine, shop.line("up", "-d", "--scale", "app=3", "--force-recreate", "--timeout", "0", "app"));
  assert.deepEqual(await resultsOf("db"), ["SERVFAIL", "SERVFAIL", "SERVFAIL"]);
  assert.deepEqual(await resultsOf("cache"), ["192.0.2.9", "192.0.2.9", "192.0.2.9"]);
  // Other services of the project notice nothing.
  await instance.waitFor("shop-db-1", "attached");
  assert.equal(await resultOf(db as Container, "cache"), cache?.address("shop_default"));
  await lab.close();
  assert.deepEqual(await resultsOf("db"), [address, address, address]);
});

test("a project that may only ask for its own services lists everything else", async () => {
  await using lab = await dns.lab({ project: "shop" });
  await lab.only(["app", "db", "cache"]);
  const [first = ""] = await resultsOf("db");
  assert.match(first, /^\d+\.\d+\.\d+\.\d+$/);
  assert.equal((await resultsOf("telemetry.example"))[0], "NXDOMAIN");
  const [rule] = (await lab.report()).rules;
  assert.deepEqual(
    rule?.refused?.map(({ container, name }) => `${container} ${name}`).toSorted(),
    ["shop-app-1", "shop-app-2", "shop-app-3"].map((container) => `${container} telemetry.example`),
  );
});

test("a rule is there for the first query of a container, though it ends at once", async () => {
  const image = await ensureImage(engine);
  await using lab = await dns.lab();
  await lab.fault("*.first.test", { nodata: true });
  let starts = 0;
  // On a busy machine the engine starts most before it has described them.
  await waitFor("two that were served in time", async () => {
    const name = `a${starts++}.first.test`;
    await engine.dockerCommand(["run", "--rm", "--network", "shop_default", "--", image, "nslookup", name]);
    const { rules } = await lab.report();
    return (rules[0]?.containers.length ?? 0) >= 2 ? true : undefined;
  });
  const { failures } = await dns.failures();
  assert.deepEqual(
    failures.filter(({ name }) => name?.endsWith(".first.test")),
    [],
  );
});
