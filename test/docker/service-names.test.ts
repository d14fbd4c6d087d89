// Names of Compose services on a real engine: SERVICE.PROJECT, and whose service a short name is, from inside containers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let shopDb: Container;
let appDb: Container;
let shopWeb: Container;
let plain: Container;
let instance: Dns11;

before(async () => {
  engine = await startEngine({ suite: "forky", resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "shared");
  shopDb = await service("shop", "db");
  appDb = await service("app", "db");
  shopWeb = await service("shop", "web");
  plain = await runContainer(engine, { name: "plain", networks: ["shared"] });
  instance = await startDns11(engine);
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** As Compose creates it. */
async function service(project: string, name: string): Promise<Container> {
  const labels = { "com.docker.compose.project": project, "com.docker.compose.service": name };
  const networks = [{ name: "shared", aliases: [name] }];
  return await runContainer(engine, { name: `${project}-${name}-1`, networks, labels });
}

test("SERVICE.PROJECT tells services of two projects apart; other names below a project go upstream", async () => {
  assert.deepEqual(dataOf(await dig(plain, "db.shop")), [shopDb.address("shared")]);
  assert.deepEqual(dataOf(await dig(plain, "DB.app")), [appDb.address("shared")]);
  const { status, answer } = await dig(plain, "db.app", "AAAA");
  assert.deepEqual([status, answer.length], ["NOERROR", 0]);
  assert.equal((await dig(plain, "nobody.app")).status, "NXDOMAIN");
  const names = (await upstream.queries()).map(({ name }) => name.toLowerCase().replace(/\.$/, ""));
  assert.deepEqual(
    names.filter((name) => /\.(app|shop)$/.test(name)),
    ["nobody.app"],
  );
});

test("a short name is that of the own project; others get all, and the doctor warns", async () => {
  assert.deepEqual(dataOf(await dig(shopWeb, "db")), [shopDb.address("shared")]);
  const both = [shopDb.address("shared"), appDb.address("shared")].toSorted();
  assert.deepEqual(dataOf(await dig(plain, "db")).toSorted(), both);
  const where = ["-H", engine.host, "--state-dir", instance.stateDir];
  const explained = await dns11(["explain", "db", "--in", shopWeb.name, "-v", ...where]);
  assert.match(explained.stdout, /in the container's own project "shop" \(switch own-project\)/);
  const { stdout } = await dns11(["doctor", plain.name, ...where]);
  assert.match(stdout, /project "app" has the name of a public domain: "db\.app" is the service/);
  assert.doesNotMatch(stdout, /project "shop" has the name/);
  assert.match(stdout, /"db" is 2 services on network shared/);
});
