/**
 * What the author of an image may say by labels baked into it: that its containers are left alone, and nothing else,
 * unless the operator allows more. Whoever creates a container says the same things by labels of its own; those lead to
 * servers that are asked from inside, and never past what the settings say.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, type ContainerOptions, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { ensureImage, labelledImage } from "../support/engine/image.ts";
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
// More domains than anybody has, in as few characters as a command line takes.
const MANY = `/${Array.from({ length: 20_000 }, (_, index) => (index + 36 ** 3).toString(36)).join("/")}/${SERVER}`;

let engine: Engine;
/** The host's resolver, and what listens at another port of its loopback. */
let hosts: Upstream;
let redis: Upstream;
let asked = 0;

before(async () => {
  engine = await startEngine();
  hosts = await startUpstream(engine, { address: "127.0.0.1" });
  redis = await startUpstream(engine, REDIS);
  await createNetwork(engine, "net");
});
after(async () => {
  await hosts[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("a label of an image leads nobody to a server of the host's loopback, by UDP or TCP, and that is told", async () => {
  await using hostile = await containerOf("hostile", HOSTILE);
  await using instance = await startDns11(engine);
  for (const transport of ["+notcp", "+tcp"]) assert.deepEqual(await whoAnswers(hostile, transport), ["hosts"]);
  assert.deepEqual(await redis.asked(), []);
  const { warning, upstreams } = await statusOf(instance, "hostile");
  assert.match(warning ?? "", /label io\.dns11\.dns of the image is ignored, .*--trust-image-labels/);
  assert.doesNotMatch(String(upstreams), /6379/);
  assert.match(instance.log, /container has a configuration problem/);
});

test("the same label given at run leads to a server in the container", async () => {
  await using created = await runContainer(engine, {
    name: "created",
    networks: ["net"],
    labels: { "io.dns11.dns": SERVER },
  });
  await using inside = await startUpstream(created, REDIS);
  await using instance = await startDns11(engine);
  const name = aName();
  await dig(created, name);
  assert.equal((await inside.askedFor(name)).length > 0, true);
  assert.deepEqual(await redis.asked(), []);
  assert.equal((await statusOf(instance, "created")).warning, undefined);
});

test("given at run over an image that says something else, the label is the creator's; the very same text is the image's", async () => {
  await using other = await containerOf("other", HOSTILE, { labels: { "io.dns11.dns": `${SERVER} ` } });
  await using same = await containerOf("same", HOSTILE, { labels: { "io.dns11.dns": SERVER } });
  await using inside = await startUpstream(other, REDIS);
  await using instance = await startDns11(engine);
  const name = aName();
  await dig(other, name);
  assert.equal((await inside.askedFor(name)).length > 0, true);
  assert.deepEqual(await whoAnswers(same), ["hosts"]);
  assert.match((await statusOf(instance, "same")).warning ?? "", /label io\.dns11\.dns of the image is ignored/);
});

test("an image may opt out, and whoever creates a container of it may undo that", async () => {
  const labels = { "io.dns11.enable": "false" };
  await using out = await containerOf("out", labels);
  await using back = await containerOf("back", labels, { labels: { "io.dns11.enable": "true" } });
  await using instance = await startDns11(engine);
  const { code, reason } = await statusOf(instance, out.name);
  assert.deepEqual([code, reason], ["opted-out", "its image's label io.dns11.enable disables dns11"]);
  assert.equal((await statusOf(instance, back.name)).state, "attached");
});

test("a label of 20,000 routes is left out, an image's and a creator's, and the rest of the label goes on", async () => {
  await using baked = await containerOf("baked", { "io.dns11.dns": MANY });
  await using given = await runContainer(engine, {
    name: "given",
    networks: ["net"],
    labels: { "io.dns11.dns": `/few.ok.test/host ${MANY}` },
  });
  await using instance = await startDns11(engine, { args: ["--trust-image-labels"] });
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
    assert.deepEqual(await whoAnswers(container), ["hosts"]);
  }
});

test("no label of an image is one that --only names, another project's of compose neither", async () => {
  await using baked = await containerOf("baked", HOSTILE);
  await using given = await containerOf(
    "given",
    {},
    { labels: { "com.docker.compose.project": HOSTILE["com.docker.compose.project"] } },
  );
  // Compose gives a container what it has baked into the image already.
  await using built = await containerOf("built", HOSTILE, {
    labels: { "com.docker.compose.project": "shop", "com.docker.compose.config-hash": "0" },
  });
  const only = ["--only", "label=com.docker.compose.project=shop"];
  await using instance = await startDns11(engine, { args: only });
  for (const { name } of [given, built]) assert.equal((await statusOf(instance, name)).state, "attached", name);
  const { code, warning } = await statusOf(instance, baked.name);
  assert.equal(code, "not-selected");
  assert.match(warning ?? "", /label com\.docker\.compose\.project of the image is ignored/);
  const { stdout } = await dns11(["run", "-H", engine.host, "--dry-run", ...only]);
  assert.match(stdout, /^baked\s+skip/m);
  assert.match(stdout, /^given\s+serve/m);
});

test("no label of an image makes a KIND node, unless the operator says so", async () => {
  await using hostile = await containerOf("hostile", HOSTILE);
  const resolvConf = await hostile.readFile("/etc/resolv.conf");
  {
    await using instance = await startDns11(engine, { args: ["--kind", "auto"] });
    const { state, node, warning } = await statusOf(instance, hostile.name);
    assert.deepEqual([state, node], ["attached", undefined]);
    assert.match(warning ?? "", /label io\.dns11\.kind of the image is ignored/);
    assert.equal(await hostile.readFile("/etc/resolv.conf"), resolvConf);
    const { stdout } = await dns11(["kind", "doctor", "-H", engine.host]);
    assert.doesNotMatch(stdout, /hostile/);
  }
  for (const args of [
    ["--kind", "auto", "--trust-image-labels"],
    ["--kind", `name=${hostile.name}`],
  ]) {
    await using instance = await startDns11(engine, { args });
    assert.notEqual((await statusOf(instance, hostile.name)).node, undefined, args.join(" "));
  }
});

test("servers of a label are asked from the host only where a setting says so, and of its own loopback by another one", async () => {
  await using given = await runContainer(engine, {
    name: "given",
    networks: ["net"],
    labels: { "io.dns11.dns": `${SERVER} /plain.ok.test/10.53.0.9` },
  });
  {
    await using instance = await startDns11(engine, { args: ["--label-servers", "host"] });
    const { warning, upstreams } = await statusOf(instance, given.name);
    assert.match(warning ?? "", /"127\.0\.0\.1:6379" .*--label-servers any/);
    assert.ok(upstreams?.includes("/plain.ok.test/host(10.53.0.9)"), String(upstreams));
    assert.deepEqual(await whoAnswers(given), ["hosts"]);
    assert.deepEqual(await redis.asked(), []);
  }
  await using instance = await startDns11(engine, { args: ["--label-servers", "any"] });
  assert.equal((await statusOf(instance, given.name)).warning, undefined);
  assert.deepEqual(await whoAnswers(given), ["redis"]);
  await redis.forget();
});

test("what the settings say of a domain counts before any label and before --dns", async () => {
  await using given = await runContainer(engine, {
    name: "given",
    networks: ["net"],
    dns: ["10.53.0.9"],
    labels: { "io.dns11.dns": "10.53.0.8, /deep.ok.test/10.53.0.7" },
  });
  await using instance = await startDns11(engine, { args: ["--dns", "host"] });
  assert.deepEqual((await statusOf(instance, given.name)).upstreams, ["host(127.0.0.1)", "/deep.ok.test/10.53.0.7"]);
  assert.deepEqual(await whoAnswers(given), ["hosts"]);
});

for (const [suite, store] of [
  ["bookworm", "dockerd"],
  ["trixie", "dockerd"],
  ["forky", "dockerd"],
  ["forky", "containerd"],
] as const) {
  test(`where the image is gone, labels count as the image's (${suite}, images kept by ${store})`, async () => {
    const daemonJson = { features: { "containerd-snapshotter": store === "containerd" } };
    const own = suite === "bookworm" ? undefined : await startEngine({ suite, daemonJson });
    const place = own ?? engine;
    await using _ = own;
    if (own !== undefined) await createNetwork(own, "net");
    const label = { "io.dns11.dns": "/given.ok.test/10.53.0.7" };
    await using gone = await containerOf("gone", { colour: "blue" }, { labels: label }, place);
    await using out = await containerOf("out", { "io.dns11.enable": "no" }, {}, place);
    const told = "/given.ok.test/10.53.0.7";
    {
      await using instance = await startDns11(place);
      assert.ok((await statusOf(instance, gone.name)).upstreams?.includes(told));
      for (const each of [gone, out]) await each.stop();
      await waitFor("the stop to be known", async () =>
        (await instance.container(gone.name)) === undefined ? true : undefined,
      );
      // Also where somebody else's image has the name by now.
      await place.docker("image", "rm", "--force", "image-of-gone", "image-of-out");
      // By its name alone containerd keeps one that a container was made of.
      for (const each of [gone, out]) {
        const { Image: id } = await each.inspect();
        await place.dockerCommand(["image", "rm", "--force", id]);
        assert.notEqual((await place.dockerCommand(["image", "inspect", id])).code, 0);
      }
      await place.docker("tag", "dns11-test", "image-of-gone");
      for (const each of [gone, out]) await each.start();
      // What was told once stays true: an image's id stands for what is in it.
      assert.ok((await instance.waitFor(gone.name, "attached")).upstreams?.includes(told));
    }
    await using instance = await startDns11(place);
    const { upstreams, warning } = await instance.waitFor(gone.name, "attached");
    assert.equal(upstreams?.includes(told), false);
    assert.match(warning ?? "", /label io\.dns11\.dns is ignored, because its image cannot be inspected/);
    assert.equal((await statusOf(instance, out.name)).code, "opted-out");
  });
}

/** Of an image that is made for it. */
async function containerOf(
  name: string,
  baked: Readonly<Record<string, string>>,
  options: ContainerOptions = {},
  place: Engine = engine,
): Promise<Container> {
  await ensureImage(place);
  const image = await ensureImage(place, labelledImage(`image-of-${name}`, baked));
  return await runContainer(place, { ...options, name, networks: ["net"], image });
}

async function statusOf(instance: Dns11, name: string): Promise<NonNullable<Awaited<ReturnType<Dns11["container"]>>>> {
  return (await instance.container(name)) ?? assert.fail(`no container ${name}`);
}

function aName(): string {
  return `q${(asked += 1)}.ok.test`;
}

/** The servers that hear a question which is answered. */
async function whoAnswers(container: Container, ...args: readonly string[]): Promise<string[]> {
  const name = aName();
  assert.notDeepEqual(dataOf(await dig(container, name, ...args)), [], name);
  const heard: string[] = [];
  if ((await hosts.askedFor(name)).length > 0) heard.push("hosts");
  if ((await redis.askedFor(name)).length > 0) heard.push("redis");
  return heard;
}
