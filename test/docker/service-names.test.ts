// Names of Compose services on a real engine, from inside containers: SERVICE.PROJECT, whose service a short name is, and names
// of containers that are not running.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { ensureImage } from "../support/engine/image.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let shopDb: Container;
let appDb: Container;
let shopWeb: Container;
let plain: Container;
/** It has stopped before dns11 starts. */
let early: Container;
let instance: Dns11;

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "shared");
  shopDb = await service("shop", "db");
  appDb = await service("app", "db");
  shopWeb = await service("shop", "web");
  plain = await runContainer(engine, { name: "plain", networks: ["shared"] });
  early = await runContainer(engine, {
    name: "early",
    networks: ["shared"],
    args: ["--network-alias", "early.corp.test"],
  });
  await early.stop();
  instance = await startDns11(engine);
  // Until an image is known, all labels may be the image's.
  for (const name of ["db.shop", "db.app"]) {
    await waitFor(name, async () => (dataOf(await dig(plain, name)).length > 0 ? true : undefined));
  }
  await upstream.forget();
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
  // A query that a busy machine does not answer at once is sent again.
  assert.deepEqual([...new Set(names.filter((name) => /\.(app|shop)$/.test(name)))], ["nobody.app"]);
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

test("labels choose the TTL, the form of PTR and the order of addresses", async () => {
  const labels = { "io.dns11.ttl": "77", "io.dns11.ptr": "fqdn", "io.dns11.address-order": "sorted" };
  const networks = [{ name: "shared", aliases: ["many"] }];
  const args = ["--domainname", "corp.test"];
  await using one = await runContainer(engine, { name: "many-1", hostname: "one", networks, labels, args });
  await using two = await runContainer(engine, { name: "many-2", hostname: "two", networks, labels, args });
  const sorted = [one.address("shared"), two.address("shared")].toSorted((a, b) => lastOf(a) - lastOf(b));
  await waitFor("both containers", async () => (dataOf(await dig(plain, "many")).length === 2 ? true : undefined));
  for (let round = 0; round < 5; round++) assert.deepEqual(dataOf(await dig(plain, "many")), sorted);
  assert.equal((await dig(plain, "many")).answer[0]?.ttl, 77);
  const pointer = `${one.address("shared").split(".").toReversed().join(".")}.in-addr.arpa`;
  assert.deepEqual(dataOf(await dig(plain, pointer, "PTR")), ["one.corp.test."]);
  assert.deepEqual(dataOf(await dig(plain, "one.corp.test")), [one.address("shared")]);
});

function lastOf(address: string): number {
  return Number(address.split(".")[3]);
}

test("names of containers that stop, have stopped or were never started stay local until they are removed", async () => {
  const where = ["-H", engine.host, "--state-dir", instance.stateDir];
  const known = async (name: string): Promise<void> => {
    await waitFor(`${name} to be known as not running`, async () => {
      const { stdout } = await dns11(["explain", name, "--in", plain.name, "-v", ...where]);
      return stdout.includes(`a name of "${name}", not running`) ? true : undefined;
    });
  };
  await known("early");
  assert.equal((await dig(plain, "early.corp.test")).status, "NXDOMAIN");
  await using late = await runContainer(engine, {
    name: "late",
    networks: [{ name: "shared", aliases: ["late.corp.test"] }],
    labels: { "io.dns11.stopped": "last-address" },
  });
  await waitFor("late to resolve", async () => (dataOf(await dig(plain, "late")).length > 0 ? true : undefined));
  const address = late.address("shared");
  await late.stop();
  await known("late");
  assert.deepEqual(dataOf(await dig(plain, "late.corp.test")), [address]);
  const image = await ensureImage(engine);
  await engine.docker(
    "create",
    "--name",
    "unborn",
    "--network",
    "shared",
    "--network-alias",
    "unborn.corp.test",
    image,
  );
  await known("unborn");
  assert.equal((await dig(plain, "unborn.corp.test")).status, "NXDOMAIN");
  const asked = (await upstream.queries()).map(({ name }) => name.toLowerCase());
  assert.deepEqual(
    asked.filter((name) => name.includes("corp.test")),
    [],
  );
  await engine.docker("rm", "unborn");
  await waitFor("unborn to be gone", async () => {
    const { stdout } = await dns11(["explain", "unborn", "--in", plain.name, "-v", ...where]);
    return stdout.includes("not running") ? undefined : true;
  });
});
