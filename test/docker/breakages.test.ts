// Proves that what breaks names, other than a missing container (failing-names.test.ts), is found by each command alone:
// `dns11 failures` and explain show the cause and its fix, doctor shows the fix and exits with 1 if it is a problem.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { CauseCode } from "../../src/api/causes.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { stdoutOf } from "../support/program/command.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { Shop, assertShows, unwrapped } from "./failing-names/shop.ts";

const EXPLAIN_LINES = 3;

let shop: Shop;
let web: Container;

before(async () => {
  shop = await Shop.open(["shop_front"]);
  web = await shop.service("web", ["shop_front"]);
});
after(async () => await shop[Symbol.asyncDispose]());

interface Expected {
  readonly client: Container;
  readonly name: string;
  readonly code: CauseCode;
  /** In doctor's output. */
  readonly doctor: RegExp;
  readonly exitCode: number;
}

/** The cause is found by each command alone. */
async function assertFound({ client, name, code, doctor, exitCode }: Expected): Promise<void> {
  const cause = await shop.causeIn(client.name, code, async () => await dig(client, "+time=1", name));
  const found = await shop.diagnose(client.name, name, cause);
  assertShows(found.failures.stdout, cause);
  const first = found.explain.stdout.split("\n").slice(0, EXPLAIN_LINES).join("\n");
  assert.ok(unwrapped(`${first}${found.explain.stderr}`).includes(unwrapped(cause.sentence).slice(0, 60)), first);
  assert.match(unwrapped(found.doctor.stdout), doctor);
  assert.equal(found.doctor.code, exitCode, found.doctor.stdout);
}

test("a server given with --dns that does not answer", async () => {
  await using client = await shop.service("deaf", ["shop_front"], { dns: ["10.255.255.1"] });
  await assertFound({ client, name: "a.ok.test", code: "upstreams-down", doctor: /10\.255\.255\.1/, exitCode: 1 });
});

test("a server with a wrong port", async () => {
  await using client = await shop.service("port", ["shop_front"], { labels: { "io.dns11.dns": "127.0.0.1:5399" } });
  await assertFound({ client, name: "a.ok.test", code: "upstreams-down", doctor: /127\.0\.0\.1:5399/, exitCode: 1 });
});

test("a firewall in the container that drops queries", async () => {
  await using client = await shop.service("walled", ["shop_front"]);
  const rules =
    "table inet fw { chain out { type filter hook output priority -250; udp dport 53 drop; tcp dport 53 drop; }; }";
  stdoutOf(await client.enter("nft", [rules]), "nft");
  await assertFound({ client, name: "web", code: "not-served", doctor: /table inet "?fw/, exitCode: 1 });
});

test("a resolv.conf that names another server", async () => {
  await using client = await shop.service("edited", ["shop_front"]);
  const write = "echo nameserver 127.0.0.2 >/etc/resolv.conf";
  stdoutOf(await client.exec("sh", ["-c", write]), write);
  await assertFound({ client, name: "web", code: "resolv-conf", doctor: /127\.0\.0\.2/, exitCode: 1 });
  const explained = unwrapped((await shop.command("explain", "web", "--in", client.name)).stdout);
  assert.match(
    explained,
    /^web \(A\) in shop-edited-1: no reply after .* why resolv\.conf of shop-edited-1 lists 127\.0\.0\.2/,
  );
  assert.doesNotMatch(explained, /resolves now/);
  const namespace = (await shop.instance.container(client.name))?.namespace;
  await client.restart();
  await waitFor("it to be served again", async () => {
    const now = await shop.instance.container(client.name);
    return now?.state === "attached" && now.namespace !== namespace ? true : undefined;
  });
  const { unwatched } = await shop.failures(client.name);
  assert.deepEqual(unwatched, [], "its fix has helped");
});

test("a resolv.conf that is mounted: a restart would not remove it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "dns11-mounted-"));
  try {
    const file = join(folder, "resolv.conf");
    await writeFile(file, "nameserver 10.255.255.3\n");
    await using client = await shop.service("mounted", ["shop_front"], {
      args: [`--volume=${file}:/etc/resolv.conf:ro`],
    });
    const { unwatched } = await shop.failures(client.name);
    const [only] = unwatched;
    assert.equal(only?.cause.code, "resolv-conf");
    assert.ok(only.cause.sentence.startsWith(`${file} is mounted over /etc/resolv.conf of shop-mounted-1`));
    assert.deepEqual([only.cause.fix, only.cause.lastingFix?.key], [null, "services.mounted.volumes"]);
    const explained = unwrapped((await shop.command("explain", "web", "--in", client.name)).stdout);
    assert.ok(explained.includes(`${file} is mounted over /etc/resolv.conf`), explained);
    assert.ok(unwrapped((await shop.command("ps")).stdout).includes("is mounted over its resolv.conf"));
    const { code, stdout } = await shop.command("doctor", client.name);
    assert.equal(code, 1, stdout);
    assert.match(
      unwrapped(stdout),
      /resolv\.conf: nameserver 10\.255\.255\.3; .*the file is a mount.* Fix: Remove the mount over \/etc\/resolv\.conf/,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("all nameservers of the host are down", async () => {
  await using client = await shop.service("outside", ["shop_front"]);
  await shop.upstream[Symbol.asyncDispose]();
  try {
    await assertFound({ client, name: "b.ok.test", code: "upstreams-down", doctor: /127\.0\.0\.1/, exitCode: 1 });
  } finally {
    shop.upstream = await startUpstream(shop.engine);
  }
  await waitFor("the server to be up", async () =>
    (await dig(web, "c.ok.test")).answer.length > 0 ? true : undefined,
  );
  const only = (await shop.failures(client.name)).failures.find(({ name }) => name === "b.ok.test");
  assert.deepEqual([only?.cause?.code, only?.earlier], ["upstreams-down", "recovered"], "as it was");
  const { stdout } = await shop.command("doctor", client.name);
  assert.doesNotMatch(stdout, /does not resolve|may be broken/);
});

test("a firewall that drops TCP to the server, which a long answer needs", async () => {
  await using client = await shop.service("long", ["shop_front"]);
  const wall = "table inet wall { chain out { type filter hook output priority 0; tcp dport 53 drop; }; }";
  stdoutOf(await shop.engine.enter("nft", [wall]), wall);
  try {
    const cause = await shop.causeIn(client.name, "tcp-blocked", async () => await dig(client, "a.tc.test"));
    assert.match(cause.sentence, /^host\(127\.0\.0\.1\) answers over UDP, but not over TCP/);
    const explained = unwrapped((await shop.command("explain", "a.tc.test", "--in", client.name)).stdout);
    assert.match(explained, /^a\.tc\.test \(A\) in shop-long-1: SERVFAIL why host\(127\.0\.0\.1\) answers over UDP/);
    assert.ok(explained.includes("fix allow TCP port 53 to host(127.0.0.1) in the firewalls on the way"), explained);
  } finally {
    stdoutOf(await shop.engine.enter("nft", ["delete table inet wall"]), "nft");
  }
  await shop.resolves(client, "a.tc.test");
});

test("a name in /etc/hosts: explain tells what the program gets", async () => {
  await using client = await shop.service("given", ["shop_front"], { args: ["--add-host=web:192.0.2.5"] });
  const { stdout } = await shop.command("explain", "web", "--in", client.name);
  assert.match(stdout, /^web \(A\) in shop-given-1: 192\.0\.2\.5 {2}\(\/etc\/hosts\)\n/);
  assert.match(
    unwrapped(stdout),
    /why programs in shop-given-1 get 192\.0\.2\.5: \/etc\/hosts has "web" \(--add-host, extra_hosts\)/,
  );
  const { stdout: program } = await client.exec("ping", ["-c", "1", "-W", "1", "web"]);
  assert.match(program, /192\.0\.2\.5/);
  const own = await shop.command("explain", client.name, "--in", client.name);
  assert.doesNotMatch(own.stdout, /hosts/);
});

test("a container that has left its only network", async () => {
  await using client = await shop.service("alone", ["shop_front"]);
  await client.disconnect("shop_front");
  await waitFor("it to be skipped", async () =>
    (await shop.instance.container(client.name))?.state === "skipped" ? true : undefined,
  );
  const fix = "docker network connect --alias alone shop_front shop-alone-1";
  const explained = await shop.command("explain", "web", "--in", client.name);
  assert.ok(explained.stdout.includes(`  fix       ${fix}\n`), explained.stdout);
  const doctor = await shop.command("doctor", client.name);
  assert.equal(doctor.code, 1);
  assert.match(
    unwrapped(doctor.stdout),
    /^NOTE shop-alone-1: not served by dns11: on no network, .* PROBLEM shop-alone-1: resolver: on no network, .*; it was created on shop_front/,
  );
  assert.ok(doctor.stdout.includes(`Fix now:      ${fix}\n`), doctor.stdout);
  assert.doesNotMatch(doctor.stdout, /loop|NETWORK|upstream/);
  await shop.run(fix);
  await shop.instance.waitFor(client.name, "attached");
  await shop.resolves(client, "web");
  await shop.resolves(web, "alone");
});

test("a container in the namespace of another one: doctor says so first", async () => {
  await using sidecar = await runContainer(shop.engine, {
    name: "sidecar",
    args: ["--network", `container:${web.id}`],
  });
  const { code, stdout } = await shop.command("doctor", sidecar.name);
  assert.equal(code, 0, stdout);
  assert.match(
    unwrapped(stdout),
    /^NOTE sidecar: not served by dns11 \(shares-namespace\): it shares the network namespace of shop-web-1, .*: dns11 doctor shop-web-1 no problem found \(/,
  );
});

test("a search domain with a wildcard, and ndots", async () => {
  const args = ["--dns-search", "ok.test", "--dns-option", "ndots:5"];
  await using client = await shop.service("searching", ["shop_front"], { args });
  const cause = await shop.causeIn(client.name, "search-list", async () => await dig(client, "web.ok.test"));
  assert.match(cause.sentence, /query "web\.ok\.test" before "web"/);
  const found = await shop.diagnose(client.name, "web", cause);
  assertShows(found.failures.stdout, cause);
  assert.match(
    unwrapped(found.explain.stdout.split("\n").slice(0, EXPLAIN_LINES).join(" ")),
    /"web\.ok\.test" before "web"/,
  );
  assert.match(unwrapped(found.doctor.stdout), /ok\.test/);
});

test("a wildcard upstream that answers for a container on another network", async () => {
  await createNetwork(shop.engine, "ok.test");
  await using _hidden = await shop.service("hidden", ["ok.test"]);
  await assertFound({ client: web, name: "hidden.ok.test", code: "shadowed", doctor: /hidden/, exitCode: 1 });
});

test("a container that has come back with another address, while its client keeps the old one", async () => {
  await using db = await shop.service("db", ["shop_front"]);
  await shop.resolves(web, "db");
  const former = db.address("shop_front");
  await db.stop();
  await using _other = await shop.service("other", ["shop_front"]);
  await db.start();
  assert.notEqual(db.address("shop_front"), former, "another container has its address");
  await shop.instance.waitFor(db.name, "attached");
  const cause = await shop.causeIn(web.name, "moved", async () => undefined);
  assert.equal(cause.fix, "docker restart shop-web-1");
  const found = await shop.diagnose(web.name, "db", cause);
  assertShows(found.failures.stdout, cause);
  assertShows(found.explain.stdout.split("\n").slice(0, EXPLAIN_LINES).join("\n"), cause);
  assertShows(found.doctor.stdout, cause);
  assert.equal(found.doctor.code, 0, "it is likely, and not certain");
  await shop.resolves(web, "db");
  assert.deepEqual((await shop.failures(web.name)).misleading, []);
});

test("a paused container, until it goes on", async () => {
  await using db = await shop.service("paused", ["shop_front"]);
  await shop.resolves(web, "paused");
  await shop.engine.docker("pause", db.name);
  await assertFound({
    client: web,
    name: "paused",
    code: "paused",
    doctor: /docker unpause shop-paused-1/,
    exitCode: 1,
  });
  await shop.engine.docker("unpause", db.name);
  await waitFor("no name to mislead", async () =>
    (await shop.failures(web.name)).misleading.length === 0 ? true : undefined,
  );
});

test("a container with an IPv6 address only", async () => {
  await createNetwork(shop.engine, "six", { args: ["--ipv4=false", "--ipv6", "--subnet", "fd16::/64"] });
  await using _six = await shop.service("v6", ["six"]);
  await using client = await shop.service("v6client", ["six"]);
  await assertFound({ client, name: "v6", code: "no-ipv4", doctor: /IPv6/, exitCode: 0 });
});
