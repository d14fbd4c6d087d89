/**
 * Labels of images: by default an image can only opt its containers out; the operator can allow more. Labels that are set
 * on a container itself have full effect, but their servers are queried from inside the container, and settings take
 * precedence.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { type Container, type ContainerOptions, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { ensureImage, labelledImage } from "../support/engine/image.ts";
import { inTurn } from "../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

const REDIS = { address: "127.0.0.1", port: 6379 };
const SERVER = "127.0.0.1:6379";
const HOSTILE = {
  "io.dns11.dns": SERVER,
  "io.dns11.kind": "true",
  "io.x-k8s.kind.cluster": "kind",
  "com.docker.compose.project": "shop",
};
// More domains than the limit, short enough for a command line.
const MANY = `/${Array.from({ length: 2_000 }, (_, index) => (index + 36 ** 3).toString(36)).join("/")}/${SERVER}`;

const WITHOUT_KEEPER = { settings: { keeper: "off" } };
const HOSTILE_IMAGE = labelledImage("image-of-hostile", HOSTILE);

let engine: Engine;
/** Of the hostile image, with nothing of its own; no test changes it. */
let hostile: Container;
/** The host's resolver, and another service on the host's loopback. */
let hosts: Upstream;
let redis: Upstream;
let names = 0;
const shared = new SharedDns11(() => engine);

before(async () => {
  // Containers of a newer engine take less processor time.
  engine = await startEngine();
  hosts = await startUpstream(engine, { address: "127.0.0.1" });
  redis = await startUpstream(engine, REDIS);
  await createNetwork(engine, "net");
  hostile = await containerOf("hostile", HOSTILE);
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await hosts[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("an image label cannot direct queries to the host's loopback, over UDP or TCP, and a warning names the label", async () => {
  const instance = await shared.under();
  for (const transport of ["+notcp", "+tcp"]) assert.deepEqual(await serversQueried(hostile, transport), ["hosts"]);
  assert.deepEqual(await redis.queries(), []);
  const { warning, upstreams } = await statusOf(instance, "hostile");
  assert.match(warning ?? "", /label io\.dns11\.dns of the image is ignored, .*trust-image-labels: true/);
  assert.doesNotMatch(String(upstreams), /6379/);
  await instance.logs(/container has a configuration problem/);
});

test("the same label set at run directs queries to a server inside the container", async () => {
  await using created = await runContainer(engine, {
    name: "created",
    networks: ["net"],
    labels: { "io.dns11.dns": SERVER },
  });
  await using inside = await startUpstream(created, REDIS);
  const instance = await shared.under();
  const name = uncachedName();
  await dig(created, name);
  assert.equal((await inside.queriesFor(name)).length > 0, true);
  assert.deepEqual(await redis.queries(), []);
  assert.equal((await statusOf(instance, "created")).warning, undefined);
});

test("a label set at run overrides the image's; with the same text it counts as the image's", async () => {
  await using other = await containerOf("other", HOSTILE, { labels: { "io.dns11.dns": `${SERVER} ` } });
  await using same = await containerOf("same", HOSTILE, { labels: { "io.dns11.dns": SERVER } });
  await using inside = await startUpstream(other, REDIS);
  const instance = await shared.under();
  const name = uncachedName();
  await dig(other, name);
  assert.equal((await inside.queriesFor(name)).length > 0, true);
  assert.deepEqual(await serversQueried(same), ["hosts"]);
  assert.match((await statusOf(instance, "same")).warning ?? "", /label io\.dns11\.dns of the image is ignored/);
});

test("an image can opt out, and a label on the container can undo that", async () => {
  const labels = { "io.dns11.enable": "false" };
  await using out = await containerOf("out", labels);
  await using back = await containerOf("back", labels, { labels: { "io.dns11.enable": "true" } });
  const instance = await shared.under();
  const { code, reason } = await statusOf(instance, out.name);
  assert.deepEqual([code, reason], ["opted-out", "its image's label io.dns11.enable disables dns11"]);
  assert.equal((await statusOf(instance, back.name)).state, "attached");
});

test("an oversized route in a label is ignored, in images and containers, and the rest of the label is used", async () => {
  await using baked = await containerOf("baked", { "io.dns11.dns": MANY });
  await using given = await runContainer(engine, {
    name: "given",
    networks: ["net"],
    labels: { "io.dns11.dns": `/few.ok.test/host ${MANY}` },
  });
  const instance = await shared.under("trust-image-labels: true");
  for (const [container, upstreams] of [
    [baked, ["127.0.0.1"]],
    [given, ["127.0.0.1", "/few.ok.test/host(127.0.0.1)"]],
  ] as const) {
    const status = await statusOf(instance, container.name);
    assert.deepEqual(
      status.upstreams?.map((text) => text.replace(/^host\((.*)\)$/, "$1")),
      upstreams,
    );
    assert.match(status.warning ?? "", /is too large: everything from "\/1000\/1001.{1,80}\.\.\." on is ignored/);
    assert.deepEqual(await serversQueried(container), ["hosts"]);
  }
});

test("--only does not match labels of an image, including those of another Compose project", async () => {
  const labels = { "com.docker.compose.project": HOSTILE["com.docker.compose.project"] };
  await using given = await runContainer(engine, { name: "given", networks: ["net"], labels });
  // Compose sets the same labels on the container and on the image that it builds.
  await using built = await containerOf("built", HOSTILE, {
    labels: { "com.docker.compose.project": "shop", "com.docker.compose.config-hash": "0" },
  });
  const only = "label=com.docker.compose.project=shop";
  const instance = await shared.under(`only: ["${only}"]`);
  for (const { name } of [given, built]) await instance.waitFor(name, "attached");
  const { code, warning } = await instance.waitFor(hostile.name, "skipped");
  assert.equal(code, "not-selected");
  assert.match(warning ?? "", /label com\.docker\.compose\.project of the image is ignored/);
  const { stdout } = await dns11(["run", "-H", engine.host, "--dry-run", "--only", only]);
  assert.match(stdout, /^hostile\s+skip/m);
  assert.match(stdout, /^given\s+serve/m);
});

test("an image cannot claim a Compose service, with few labels or too many to compare, running or stopped", async () => {
  const place = { "com.docker.compose.project": "bait", "com.docker.compose.service": "db" };
  const others = ["health", "ptr", "ttl", "stopped", "names", "ports", "answers", "search", "address-order"];
  const long = "x".repeat(LIMITS.imageLabelChars / 8);
  const many = { ...place, ...Object.fromEntries(others.map((name) => [`io.dns11.${name}`, long])) };
  await using given = await runContainer(engine, { name: "given", networks: ["net"], labels: place });
  await using few = await containerOf("few", place);
  await using over = await containerOf("over", many);
  const instance = await shared.under();
  const client = instance.client;
  const placed = async (): Promise<readonly unknown[]> =>
    (await client.containers()).containers.filter(({ project }) => project !== null).map(({ name }) => name);
  assert.deepEqual(await placed(), [given.name]);
  const args = ["lookup", given.name, "--in", "db", "--state-dir", instance.stateDir, "-H", engine.host];
  const { stdout, stderr } = await dns11(args);
  assert.equal(stderr, "", "no other container is called so");
  assert.match(stdout, /\bgiven\b/);
  for (const each of [given, few, over]) await each.stop();
  await waitFor("dns11 to notice", async () => ((await client.status()).containers.length === 1 ? true : undefined));
  assert.deepEqual(await placed(), [given.name]);
});

test("an image label cannot declare a KIND node, unless the operator allows it", async () => {
  const resolvConf = await hostile.readFile("/etc/resolv.conf");
  {
    const instance = await shared.under("kind: {nodes: [auto]}");
    const { state, node, warning } = await statusOf(instance, hostile.name);
    assert.deepEqual([state, node], ["attached", undefined]);
    assert.match(warning ?? "", /label io\.dns11\.kind of the image is ignored/);
    assert.equal(await hostile.readFile("/etc/resolv.conf"), resolvConf);
    const { stdout } = await dns11(["kind", "doctor", "-H", engine.host]);
    assert.doesNotMatch(stdout, /hostile/);
  }
  for (const lines of [
    ["kind: {nodes: [auto]}", "trust-image-labels: true"],
    [`kind: {nodes: ["name=${hostile.name}"]}`],
  ]) {
    const instance = await shared.under(...lines);
    await waitFor(`a node with ${lines.join(" ")}`, async () => (await statusOf(instance, hostile.name)).node);
    await shared.under();
    await waitFor("no node", async () =>
      (await statusOf(instance, hostile.name)).node === undefined ? true : undefined,
    );
  }
});

test("label servers are queried from the host only with label-servers: host, and on its loopback only with any", async () => {
  await using given = await runContainer(engine, {
    name: "given",
    networks: ["net"],
    labels: { "io.dns11.dns": `${SERVER} /plain.ok.test/10.53.0.9` },
  });
  {
    const instance = await shared.under("label-servers: host");
    const { warning, upstreams } = await statusOf(instance, given.name);
    assert.match(warning ?? "", /"127\.0\.0\.1:6379" .*label-servers: any/);
    assert.ok(upstreams?.includes("/plain.ok.test/host(10.53.0.9)"), String(upstreams));
    assert.deepEqual(await serversQueried(given), ["hosts"]);
    assert.deepEqual(await redis.queries(), []);
  }
  const instance = await shared.under("label-servers: any");
  assert.equal((await statusOf(instance, given.name)).warning, undefined);
  assert.deepEqual(await serversQueried(given), ["redis"]);
  await redis.forget();
});

test("settings for a domain take precedence over labels and --dns", async () => {
  await using given = await runContainer(engine, {
    name: "given",
    networks: ["net"],
    dns: ["10.53.0.9"],
    labels: { "io.dns11.dns": "10.53.0.8, /deep.ok.test/10.53.0.7" },
  });
  const instance = await shared.under("dns: [host]");
  assert.deepEqual((await statusOf(instance, given.name)).upstreams, ["host(127.0.0.1)", "/deep.ok.test/10.53.0.7"]);
  assert.deepEqual(await serversQueried(given), ["hosts"]);
});

const STORES = [
  ["bookworm", "dockerd"],
  ["trixie", "dockerd"],
  ["forky", "dockerd"],
  ["forky", "containerd"],
] as const;

for (const [suite, store] of inTurn(STORES)) {
  test(`if the image is gone, labels count as the image's (${suite}, images stored by ${store})`, async () => {
    // An engine of bookworm does not know the setting.
    const features = { "containerd-snapshotter": store === "containerd" };
    const daemonJson = suite === "bookworm" ? {} : { features };
    await using own = await startEngine({ suite, daemonJson });
    await createNetwork(own, "net");
    await assertGone(own);
  });
}

async function assertGone(place: Engine): Promise<void> {
  const route = "/given.ok.test/10.53.0.7";
  await using gone = await containerOf("gone", { colour: "blue" }, { labels: { "io.dns11.dns": route } }, place);
  await using out = await containerOf("out", { "io.dns11.enable": "no" }, {}, place);
  {
    await using instance = await startDns11(place, WITHOUT_KEEPER);
    assert.ok((await statusOf(instance, gone.name)).upstreams?.includes(route));
    for (const each of [gone, out]) await each.stop();
    await waitFor("dns11 to notice the stop", async () =>
      (await instance.container(gone.name)) === undefined ? true : undefined,
    );
    // Even if another image has the name by now.
    await place.docker("image", "rm", "--force", "image-of-gone", "image-of-out");
    // If removed by name only, containerd keeps the image of a container.
    for (const each of [gone, out]) {
      const { Image: id } = await each.inspect();
      await place.dockerCommand(["image", "rm", "--force", id]);
      assert.notEqual((await place.dockerCommand(["image", "inspect", id])).code, 0);
    }
    await place.docker("tag", "dns11-test", "image-of-gone");
    for (const each of [gone, out]) await each.start();
    // A known image stays known: its ID identifies its content.
    assert.ok((await instance.waitFor(gone.name, "attached")).upstreams?.includes(route));
  }
  await using instance = await startDns11(place, WITHOUT_KEEPER);
  const { upstreams, warning } = await instance.waitFor(gone.name, "attached");
  assert.equal(upstreams?.includes(route), false);
  assert.match(warning ?? "", /label io\.dns11\.dns is ignored, because its image cannot be inspected/);
  assert.equal((await statusOf(instance, out.name)).code, "opted-out");
}

/** A container of an image that is built for it, or of the hostile one. */
async function containerOf(
  name: string,
  baked: Readonly<Record<string, string>>,
  options: ContainerOptions = {},
  place: Engine = engine,
): Promise<Container> {
  await ensureImage(place);
  const image = await ensureImage(place, baked === HOSTILE ? HOSTILE_IMAGE : labelledImage(`image-of-${name}`, baked));
  return await runContainer(place, { ...options, name, networks: ["net"], image });
}

async function statusOf(instance: Dns11, name: string): Promise<NonNullable<Awaited<ReturnType<Dns11["container"]>>>> {
  return (await instance.container(name)) ?? assert.fail(`no container ${name}`);
}

function uncachedName(): string {
  return `q${(names += 1)}.ok.test`;
}

/** The servers that receive a query; it must be answered. */
async function serversQueried(container: Container, ...args: readonly string[]): Promise<string[]> {
  const name = uncachedName();
  assert.notDeepEqual(dataOf(await dig(container, name, ...args)), [], name);
  const queried: string[] = [];
  if ((await hosts.queriesFor(name)).length > 0) queried.push("hosts");
  if ((await redis.queriesFor(name)).length > 0) queried.push("redis");
  return queried;
}
