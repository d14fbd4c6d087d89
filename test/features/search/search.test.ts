/**
 * The search list of a project, on real engines: with it glibc and musl find services by their short names, from inside. Nobody else's
 * file changes, what others have written stays, and however dns11 ends, the file is as Docker wrote it.
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Container, type ContainerOptions, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { MACHINE_IMAGE, ensureImage, labelledImage } from "../../support/engine/image.ts";
import { machineVolumes } from "../../support/engine/machine-container.ts";
import { check } from "../../support/program/command.ts";
import { type Dns11, WITHOUT_KEEPER, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const ZONE = "cluster.local";
const SEARCH = `shop.svc.${ZONE} svc.${ZONE} ${ZONE}`;
const ASKS = { "io.dns11.search": "project" };
/** A takeover needs a keeper. */
const WITH_KEEPER = { args: ["--zone", ZONE] };
const IN_ZONE = { ...WITH_KEEPER, env: WITHOUT_KEEPER };
const folder = makeFolder("project-search");
const musl = join(folder, "lookup");
const NETWORKS = ["front"];

let engine: Engine;
let upstream: Upstream;
/** It asks for the list, and has the programs of the machine. */
let client: Container;

before(async () => {
  await check("musl-gcc", ["-static", "-o", musl, "test/support/client/lookup.c"]);
  engine = await startEngine();
  upstream = await startUpstream(engine);
  await createNetwork(engine, "front");
  await member("shop", "db");
  await member("bank", "db");
  client = await member("shop", "client", { labels: ASKS, ...(await withPrograms()) });
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function withPrograms(): Promise<ContainerOptions> {
  const args = [...machineVolumes(), `--volume=${musl}:/lookup:ro`];
  return { image: await ensureImage(engine, MACHINE_IMAGE), command: ["sleep", "infinity"], args };
}

async function member(project: string, service: string, options: ContainerOptions = {}): Promise<Container> {
  const compose = { project, service, "container-number": "1" };
  const labels = Object.fromEntries(
    Object.entries(compose).map(([key, value]) => [`com.docker.compose.${key}`, value]),
  );
  const name = options.name ?? `${project}-${service}`;
  return await runContainer(engine, { networks: NETWORKS, ...options, name, labels: { ...labels, ...options.labels } });
}

async function textOf(container: Container): Promise<string> {
  return readFileSync((await container.inspect()).ResolvConfPath, "latin1");
}

async function untilSearch(container: Container, expected: string): Promise<void> {
  await waitFor(`${container.name} to search ${expected}`, async () =>
    (await container.readFile("/etc/resolv.conf")).includes(`search ${expected}\n`) ? true : undefined,
  );
}

async function untilText(container: Container, expected: string): Promise<void> {
  await waitFor("the file to be as before", async () => ((await textOf(container)) === expected ? true : undefined));
}

/** The warning of a container that ps shows. */
async function warningOf(instance: Dns11, name: string): Promise<string> {
  return await waitFor(`a warning about ${name}`, async () => (await instance.container(name))?.warning);
}

async function command(instance: Dns11, ...args: string[]): Promise<string> {
  return (await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir])).stdout;
}

/** The address of a member, by each C library inside the client. */
async function found(name: string): Promise<string[]> {
  const glibc = await client.exec("getent", ["ahostsv4", name]);
  const byMusl = await client.exec("/lookup", [name]);
  return [glibc, byMusl].map(({ stdout }) => stdout.split(/\s/)[0] ?? "");
}

test("glibc and musl find services by short names; nothing of that goes to a server, and the file is restored to the byte", async () => {
  const original = await textOf(client);
  const others = ["shop-db", "bank-db"];
  const untouched = await Promise.all(others.map(async (name) => await textOf(await inspected(name))));
  await using instance = await startDns11(engine, IN_ZONE);
  await untilSearch(client, SEARCH);
  assert.match(await textOf(client), /^options.* ndots:5$/m);
  const [ours = "", theirs = ""] = await Promise.all(
    others.map(async (name) => (await inspected(name)).address("front")),
  );
  for (const name of ["db", "db.shop", "db.shop.svc", `db.shop.svc.${ZONE}`])
    assert.deepEqual(await found(name), [ours, ours], name);
  for (const name of ["db.bank", "db.bank.svc"]) assert.deepEqual(await found(name), [theirs, theirs], name);
  assert.deepEqual(await found("n5.ok.test"), ["192.0.2.5", "192.0.2.5"], "outside names as before");
  const asked = (await upstream.queries()).map(({ name }) => name.toLowerCase());
  assert.deepEqual([...new Set(asked)], ["n5.ok.test"]);
  assert.equal((await instance.container("shop-client"))?.warning, undefined);
  assert.deepEqual(await Promise.all(others.map(async (name) => await textOf(await inspected(name)))), untouched);
  await instance.stop();
  assert.equal(await textOf(client), original);
});

async function inspected(name: string): Promise<Container> {
  return await Container.of(engine, name);
}

test("a replacement leaves the file as it is; a kill is undone by the next start, or by cleanup", async () => {
  const original = await textOf(client);
  await using first = await startDns11(engine, WITH_KEEPER);
  await untilSearch(client, SEARCH);
  const written = await textOf(client);
  await using second = await replaceDns11(engine, first, WITH_KEEPER);
  assert.equal(await textOf(client), written);
  process.kill(second.pid, "SIGKILL");
  await second.ended();
  assert.equal(await textOf(client), written);
  await using third = await startDns11(engine, { ...WITH_KEEPER, stateDir: first.stateDir });
  assert.equal(await textOf(client), written, "the next one adopts it");
  process.kill(third.pid, "SIGKILL");
  await third.ended();
  await using other = await startDns11(engine, { stateDir: first.stateDir });
  await untilText(client, original);
  assert.match(await warningOf(other, "shop-client"), /io\.dns11\.search has no effect: there is no zone: set zone/);
  await other.stop();
  await using last = await startDns11(engine, { ...WITH_KEEPER, stateDir: first.stateDir });
  await untilSearch(client, SEARCH);
  process.kill(last.pid, "SIGKILL");
  await last.ended();
  assert.match(await command(last, "cleanup"), /shop-client: restored resolv\.conf/);
  assert.equal(await textOf(client), original);
});

test("it follows the zone of the settings, restarts and networks; a container that starts later gets it, too", async () => {
  const path = join(folder, "dns11.yaml");
  const under = (text: string): void => writeFileSync(path, `version: 1\n${text}`);
  const original = await textOf(client);
  under(`zone: ${ZONE}\n`);
  await using instance = await startDns11(engine, { args: ["--config", path], env: WITHOUT_KEEPER });
  await untilSearch(client, SEARCH);
  under("zone: docker.test\n");
  await instance.reload();
  await untilSearch(client, "shop.svc.docker.test svc.docker.test docker.test");
  under("");
  await instance.reload();
  await untilText(client, original);
  under(`zone: ${ZONE}\n`);
  await instance.reload();
  await untilSearch(client, SEARCH);
  await client.restart();
  await untilSearch(client, SEARCH);
  await createNetwork(engine, "more");
  await client.connect("more");
  await using later = await member("shop", "later", { labels: ASKS });
  await untilSearch(later, SEARCH);
  await untilSearch(client, SEARCH);
  await client.disconnect("more");
  await instance.stop();
  assert.equal(await textOf(client), original);
});

test("what its creator gives with dns_search and dns_opt stays, behind the project, up to six domains", async () => {
  const own = ["a", "b", "c", "d"].map((label) => `--dns-search=${label}.test`);
  await using many = await member("shop", "many", { labels: ASKS, args: [...own, "--dns-option=ndots:2"] });
  const original = await textOf(many);
  await using instance = await startDns11(engine, IN_ZONE);
  await untilSearch(many, `${SEARCH} a.test b.test c.test`);
  assert.match(await textOf(many), /^options.*ndots:2/m);
  await instance.stop();
  assert.equal(await textOf(many), original);
});

test("a file that a program has changed, or that is mounted, is left as it is, and ps says so", async () => {
  const mounted = join(folder, "resolv.conf");
  const OWN = "nameserver 127.0.0.11\noptions ndots:0\n";
  writeFileSync(mounted, OWN);
  const args = [`--volume=${mounted}:/etc/resolv.conf`];
  await using _ = await member("shop", "owner", { labels: ASKS, args });
  await using editor = await member("shop", "editor", { labels: ASKS });
  await using late = await member("shop", "late", { labels: ASKS });
  const write = async (container: Container, text: string): Promise<void> =>
    void (await container.exec("sh", ["-c", `echo '${text}' >>/etc/resolv.conf`]));
  await write(editor, "nameserver 192.0.2.1");
  const edited = await textOf(editor);
  await using instance = await startDns11(engine, IN_ZONE);
  assert.match(await warningOf(instance, "shop-owner"), /no effect: another file is mounted at \/etc\/resolv\.conf/);
  assert.match(await warningOf(instance, "shop-editor"), /no effect: another program has changed its resolv\.conf/);
  await untilSearch(late, SEARCH);
  await write(late, "search mine.test");
  const changed = await textOf(late);
  assert.match(await command(instance, "ps"), /shop-editor +ok .*another program has changed its resolv\.conf/);
  await instance.stop();
  assert.deepEqual([readFileSync(mounted, "utf8"), await textOf(editor), await textOf(late)], [OWN, edited, changed]);
});

test("an image cannot ask for it, a container without a project gets none, and the default bridge has none", async () => {
  const image = await ensureImage(engine, labelledImage("asking", ASKS));
  await using made = await member("shop", "made", { image });
  await using single = await runContainer(engine, { name: "single", networks: NETWORKS, labels: ASKS });
  await using bridged = await runContainer(engine, {
    name: "bridged",
    labels: { ...ASKS, "io.dns11.project": "shop" },
  });
  const all = [made, single, bridged];
  const original = await Promise.all(all.map(textOf));
  await using instance = await startDns11(engine, {
    ...IN_ZONE,
    env: { ...WITHOUT_KEEPER, DNS11_DEFAULT_BRIDGE: "names" },
  });
  assert.match(await warningOf(instance, "shop-made"), /label io\.dns11\.search of the image is ignored/);
  assert.match(await warningOf(instance, "single"), /no effect: the container belongs to no project/);
  assert.match(await warningOf(instance, "bridged"), /no effect: its resolv\.conf is not written/);
  assert.deepEqual(await Promise.all(all.map(textOf)), original);
});

test("on an engine of version 28 the file is restored to the byte as well, and a restart of the container starts afresh", async () => {
  await using newer = await startEngine({ suite: "forky", resolvConf: "nameserver 127.0.0.1\nsearch lan.test\n" });
  await createNetwork(newer, "front");
  const labels = { ...ASKS, "io.dns11.project": "shop" };
  const asking = await runContainer(newer, { name: "asking", networks: NETWORKS, labels });
  const original = await textOf(asking);
  await using instance = await startDns11(newer, IN_ZONE);
  await untilSearch(asking, `${SEARCH} lan.test`);
  assert.match(await textOf(asking), /^# ExtServers: /m, "Docker's comments stay");
  await asking.restart();
  await untilSearch(asking, `${SEARCH} lan.test`);
  await instance.stop();
  assert.equal(await textOf(asking), original);
});
