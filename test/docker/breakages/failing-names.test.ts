// Proves that the failures of a Compose project are found: each is made on a real engine, and `dns11 failures` shows it with
// its cause and fix, explain says it first, and doctor ends with 1 and names the fix; when it is fixed, nothing is left.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { CauseCode } from "../../../src/api/causes.ts";
import { type Container, runContainer } from "../../support/engine/container.ts";
import { dig, digMany } from "../../support/client/dig.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { Shop, unwrapped, withoutAge } from "./shop.ts";

let shop: Shop;
let api: Container;
let db: Container;

before(async () => {
  shop = await Shop.open(["shared"]);
  api = await shop.service("api", ["shop_front"]);
  await shop.service("web", ["shop_front"]);
  db = await shop.service("db", ["shop_back"]);
});
after(async () => await shop[Symbol.asyncDispose]());

/** The name fails, and failures, explain and doctor all say why and name the fix. */
async function assertDiagnosed(name: string, code: CauseCode, fix: string, type = "A"): Promise<void> {
  await dig(api, name, type);
  const failure = await shop.failureOf(name, code);
  assert.deepEqual([failure.container, failure.type, failure.isContainerName], ["shop-api-1", type, true]);
  assert.equal(failure.cause?.fix ?? failure.cause?.advice, fix);
  const shown = unwrapped((await shop.command("failures", "shop-api-1")).stdout);
  const sentence = unwrapped(failure.cause?.sentence ?? "");
  assert.ok(shown.includes(`why: ${sentence} fix: ${fix}`), shown);
  const explained = (await shop.command("explain", name, "--in", "shop-api-1")).stdout.split("\n");
  assert.equal(explained[0], `${name} (A) in shop-api-1: NXDOMAIN`);
  assert.equal(withoutAge(explained[1]), `  why       ${withoutAge(failure.cause?.sentence)}`);
  assert.ok(unwrapped(explained.slice(2).join("\n")).startsWith(` fix ${fix}`), explained.join("\n"));
  const { code: exitCode, stdout } = await shop.command("doctor", "shop-api-1");
  assert.equal(exitCode, 1, stdout);
  const isCommand = failure.cause?.fix !== null;
  assert.ok(isCommand ? stdout.includes(`Fix now:      ${fix}\n`) : unwrapped(stdout).includes(fix.slice(1)), stdout);
  assert.match(stdout, /^PROBLEM {2}shop-api-1: "\S+" does not resolve$/m);
}

test("without failures there are none", async () => {
  const { stdout } = await shop.command("failures");
  assert.equal(stdout, "no container's name fails\n");
});

test("a service that is not on the network of its client, until it is connected", async () => {
  const fix = "docker network connect --alias api shop_back shop-api-1";
  await assertDiagnosed("db", "other-network", fix);
  const { cause } = await shop.failureOf("db", "other-network");
  assert.deepEqual(cause?.lastingFix, {
    file: shop.project.file,
    service: "api",
    key: "services.api.networks",
    change: "set it to [front, back]",
    command: `docker compose -p shop -f ${shop.project.file} up -d --force-recreate api`,
  });
  await shop.run(fix);
  await waitFor("db to resolve", async () => ((await dig(api, "db")).answer.length > 0 ? true : undefined));
  const earlier = await waitFor("the failure to be over", async () =>
    (await shop.failures()).failures.find((each) => each.name === "db" && each.earlier !== undefined),
  );
  // A query that failed while the network was being connected is explained by what is there now.
  assert.match(earlier.cause?.code ?? "", /^(?:other-network|resolves-now)$/);
  assert.match(earlier.earlier ?? "", /^(?:resolved|recovered)$/);
  assert.equal((await shop.command("failures")).stdout.includes("why"), false);
  assert.match(
    (await shop.command("failures", "--all")).stdout,
    /^earlier\n[\s\S]* {2}why: "db" (?:is|resolves now: it is) container shop-db-1 on/m,
  );
  const { stdout } = await shop.command("doctor", "shop-api-1");
  assert.ok(!stdout.includes("failing names"), stdout);
});

test("a service that is stopped, by its name and its service, with its exit code", async () => {
  await db.stop();
  await waitFor("db to be gone", async () => ((await dig(api, "db")).answer.length === 0 ? true : undefined));
  await assertDiagnosed("db", "not-running", "docker start shop-db-1");
  const { cause } = await shop.failureOf("db", "not-running");
  assert.match(
    cause?.sentence ?? "",
    /^"db" is container shop-db-1, which exited with code \d+, \d+ (?:s|min) ago \(network shop_back\)$/,
  );
  await db.start();
  await waitFor("db to resolve", async () => ((await dig(api, "db")).answer.length > 0 ? true : undefined));
});

test("a container on the default bridge", async () => {
  await using plain = await runContainer(shop.engine, { name: "plain" });
  await waitFor("plain to be known", async () => await shop.instance.container(plain.name));
  // The first network that it is on.
  const { cause } = (await dig(api, "plain"), await shop.failureOf("plain", "no-dns-name"));
  await assertDiagnosed("plain", "no-dns-name", cause?.fix ?? "");
  assert.match(cause?.fix ?? "", /^docker network connect shop_\w+ plain$/);
});

test("a typo", async () => {
  await assertDiagnosed(
    "wbe",
    "similar-name",
    'change the name to "web" where shop-api-1 is given it: its environment, arguments or settings',
  );
});

test("a name that exists only in another project", async () => {
  await using queue = await shop.service("queue", ["other_net"], { project: "other" });
  await shop.instance.waitFor(queue.name, "attached");
  await assertDiagnosed("queue", "other-project", "docker network connect --alias api other_net shop-api-1");
});

test("one name of two projects on one network: no query fails, but for others answers alternate", async () => {
  await using mine = await shop.service("store", ["shared"]);
  await using other = await shop.service("store", ["shared"], { project: "other" });
  await using outside = await runContainer(shop.engine, { name: "outside", networks: ["shared"] });
  for (const { name } of [mine, other, outside]) await shop.instance.waitFor(name, "attached");
  const { stdout } = await shop.command("failures");
  const fix = "docker network disconnect shared other-store-1";
  assert.match(
    stdout,
    /store on network shared resolves, but misleads its clients\n {2}why: .*shop-store-1 \(project shop\), other-store-1/,
  );
  assert.ok(stdout.includes(`  fix: ${fix}\n`), stdout);
  const doctor = await shop.command("doctor", mine.name);
  assert.equal(doctor.code, 0, doctor.stdout);
  assert.match(doctor.stdout, /^WARNING {2}.*"store" is 2 services on network shared/m);
  assert.ok(doctor.stdout.includes(`Fix now:      ${fix}\n`), doctor.stdout);
  const own = await shop.command("explain", "store", "--in", mine.name);
  assert.doesNotMatch(own.stdout, /2 addresses|2 services/);
  const explained = await shop.command("explain", "store", "--in", outside.name);
  assert.match(explained.stdout, /^store \(A\) in outside: 2 addresses\n/);
  assert.match(explained.stdout, /\n {2}[\d.]+ {2}other-store-1 \(project other\)\n/);
  assert.match(explained.stdout, /\n {2}why {7}"store" is 2 services on network shared/);
});

test("names of the outside world are apart, and no problem", async () => {
  await using single = await shop.service("single", ["shop_front"]);
  await shop.instance.waitFor(single.name, "attached");
  await dig(single, "a.nx.test");
  const { isContainerName } = await shop.failureOf("a.nx.test", "does-not-exist");
  assert.equal(isContainerName, false);
  assert.doesNotMatch((await shop.command("failures", single.name)).stdout, /nx\.test/);
  assert.match((await shop.command("failures", single.name, "--all")).stdout, /a\.nx\.test +A +NXDOMAIN +1 /);
  const { code, stdout } = await shop.command("doctor", single.name);
  assert.equal(code, 0, stdout);
  const { failures } = await shop.client.failures({ container: single.name });
  assert.deepEqual(
    failures.map(({ name }) => name),
    ["a.nx.test"],
    "the doctor's own queries are not among them",
  );
});

test("a step of a search list whose lookup succeeds is no failure", async () => {
  await using searching = await runContainer(shop.engine, {
    name: "searching",
    networks: ["shop_front"],
    args: ["--dns-search", "nx.test"],
  });
  await shop.instance.waitFor(searching.name, "attached");
  await dig(searching, "web.nx.test");
  await shop.failureOf("web.nx.test", "does-not-exist");
  // A step and its lookup are seconds apart at most, as they are in a C library.
  await waitFor("no failure", async () => {
    await digMany(searching, "127.0.0.11", [["web.nx.test"], ["web"]]);
    const { failures } = await shop.client.failures({ container: searching.name });
    return failures.length === 0 ? true : undefined;
  });
});

test("nor is it one of a container that has ended, and its search list with it", async () => {
  await using ended = await runContainer(shop.engine, {
    name: "ended",
    networks: ["shop_front"],
    args: ["--dns-search", "nx.test"],
  });
  await shop.instance.waitFor(ended.name, "attached");
  await digMany(ended, "127.0.0.11", [["web.nx.test"], ["web"], ["gone.nx.test"]]);
  await shop.failureOf("gone.nx.test", "does-not-exist");
  await ended.remove();
  await waitFor("it to be gone", async () =>
    (await shop.instance.container("ended")) === undefined ? true : undefined,
  );
  const { failures } = await shop.failures();
  const own = failures.filter(({ container }) => container === "ended").map(({ name, count }) => [name, count]);
  assert.deepEqual(own, [["gone.nx.test", 1]]);
});

test("failures are followed as they happen, each once, and a lookup that servers fail is logged with its name", async () => {
  const control = shop.client;
  const stop = new AbortController();
  const names: string[] = [];
  const toAsk = ["a.servfail.test", "b.servfail.test", "a.servfail.test"];
  const asked: string[] = [];
  const ask = async (): Promise<void> => {
    const next = toAsk[asked.length] ?? assert.fail();
    asked.push(next);
    await dig(api, next);
  };
  for await (const { name, cause } of control.followFailures({ container: "shop-api-1" }, stop.signal)) {
    names.push(name ?? "");
    if (asked.length === 0) await ask();
    if (name !== asked.at(-1)) continue;
    assert.equal(cause?.code, "upstream-error");
    if (asked.length < toAsk.length) await ask();
    else stop.abort();
  }
  const followed = names.filter((name) => name.endsWith(".servfail.test"));
  assert.deepEqual(followed, toAsk);
  const ofName = (line: string): boolean => line.includes("lookup failed") && line.includes('"a.servfail.test"');
  const line = await waitFor("its line in the log", () => shop.instance.log.split("\n").find(ofName));
  const { name, type, container, result } = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual([name, type, container], ["a.servfail.test", "A", "shop-api-1"]);
  assert.match(String(result), /SERVFAIL/);
});
