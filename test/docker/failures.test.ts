// Proves that the failures of a Compose project are found: each is made on a real engine, and `dns11 failures` shows it with
// its cause and fix, explain says it first, and doctor ends with 1 and names the fix; when it is fixed, nothing is left.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ControlClient } from "../../src/api/control-client.ts";
import type { FailureReport } from "../../src/api/failures.ts";
import { locateControl } from "../../src/api/locate.ts";
import { type Container, type NetworkAttachment, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { dig } from "../support/client/dig.ts";
import type { CommandResult } from "../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const FILE = "/srv/shop/compose.yaml";

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let api: Container;
let db: Container;

before(async () => {
  engine = await startEngine({ suite: "forky", resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  for (const name of ["shop_front", "shop_back", "shared"]) await createNetwork(engine, name);
  api = await composed("api", ["shop_front"]);
  await composed("web", ["shop_front"]);
  db = await composed("db", ["shop_back"]);
  instance = await startDns11(engine);
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** A container as Compose creates it: its labels, and its service as an alias on each network. */
async function composed(service: string, networks: readonly string[], project = "shop"): Promise<Container> {
  return await runContainer(engine, {
    name: `${project}-${service}-1`,
    networks: networks.map((name): NetworkAttachment => ({ name, aliases: [service] })),
    labels: {
      "com.docker.compose.project": project,
      "com.docker.compose.service": service,
      "com.docker.compose.project.config_files": FILE,
    },
  });
}

async function command(...args: string[]): Promise<CommandResult> {
  return await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir]);
}

async function client(): Promise<ControlClient> {
  return new ControlClient(await locateControl(instance.stateDir, engine.host));
}

/** The failure of a name once it has a cause. */
async function failureOf(name: string, code: string): Promise<FailureReport> {
  const control = await client();
  let last: unknown;
  const look = async (): Promise<FailureReport | undefined> => {
    const { failures } = await control.failures();
    last = failures;
    return failures.find((each) => each.name === name && each.cause?.code === code);
  };
  try {
    return await waitFor(`${name} to fail for ${code}`, look);
  } catch (error) {
    throw new Error(JSON.stringify(last), { cause: error });
  }
}

/** The name fails, and failures, explain and doctor all say why and name the fix. */
async function assertDiagnosed(name: string, code: string, fix: string, type = "A"): Promise<void> {
  await dig(api, name, type);
  const failure = await failureOf(name, code);
  assert.deepEqual([failure.container, failure.type, failure.isContainerName], ["shop-api-1", type, true]);
  assert.equal(failure.cause?.fix, fix);
  const shown = (await command("failures", "shop-api-1")).stdout;
  const sentence = withoutAge(failure.cause?.sentence);
  assert.ok(withoutAge(shown).includes(`  why: ${sentence}\n  fix: ${fix}\n`), shown);
  const explained = (await command("explain", name, "--in", "shop-api-1")).stdout.split("\n");
  assert.match(explained[1] ?? "", /^NXDOMAIN /);
  assert.equal(withoutAge(explained[2]), `  why: ${sentence}`);
  const { code: exitCode, stdout } = await command("doctor", "shop-api-1");
  assert.equal(exitCode, 1, stdout);
  assert.ok(stdout.includes(`Fix now:      ${fix}\n`), stdout);
  assert.match(stdout, /^PROBLEM {2}shop-api-1: "\S+" does not resolve$/m);
}

/** Seconds pass between two commands. */
function withoutAge(text = ""): string {
  return text.replaceAll(/\d+ s ago/g, "");
}

test("without failures there are none", async () => {
  const { stdout } = await command("failures");
  assert.equal(stdout, "no container's name fails\n");
});

test("a service that is not on the network of its client, until it is connected", async () => {
  const fix = "docker network connect shop_back shop-api-1";
  await assertDiagnosed("db", "other-network", fix);
  const { cause } = await failureOf("db", "other-network");
  assert.deepEqual(cause?.lastingFix, {
    file: FILE,
    service: "api",
    key: "services.api.networks",
    change: 'add "back"',
  });
  await engine.docker("network", "connect", "shop_back", "shop-api-1");
  await waitFor("db to resolve", async () => ((await dig(api, "db")).answer.length > 0 ? true : undefined));
  await failureOf("db", "resolves-now");
  assert.equal((await command("failures")).stdout.includes("why"), false);
  const { stdout } = await command("doctor", "shop-api-1");
  assert.ok(!stdout.includes("failing names"), stdout);
});

test("a service that is stopped, by its name and its service, with its exit code", async () => {
  await db.stop();
  await waitFor("db to be gone", async () => ((await dig(api, "db")).answer.length === 0 ? true : undefined));
  await assertDiagnosed("db", "not-running", "docker start shop-db-1");
  const { cause } = await failureOf("db", "not-running");
  assert.match(
    cause?.sentence ?? "",
    /^"db" is container shop-db-1, which exited with code \d+, \d+ s ago \(network shop_back\)$/,
  );
  await db.start();
  await waitFor("db to resolve", async () => ((await dig(api, "db")).answer.length > 0 ? true : undefined));
});

test("a container on the default bridge", async () => {
  await using plain = await runContainer(engine, { name: "plain" });
  await waitFor("plain to be known", async () => await instance.container(plain.name));
  // The first network that it is on.
  const { cause } = (await dig(api, "plain"), await failureOf("plain", "no-dns-name"));
  await assertDiagnosed("plain", "no-dns-name", cause?.fix ?? "");
  assert.match(cause?.fix ?? "", /^docker network connect shop_\w+ plain$/);
});

test("a typo", async () => {
  await assertDiagnosed("wbe", "similar-name", 'use the name "web"');
});

test("a name that exists only in another project", async () => {
  await createNetwork(engine, "other_net");
  await using queue = await composed("queue", ["other_net"], "other");
  await instance.waitFor(queue.name, "attached");
  await assertDiagnosed("queue", "other-project", "docker network connect other_net shop-api-1");
});

test("one name of two projects on one network: no query fails, but answers alternate", async () => {
  await using mine = await composed("store", ["shared"]);
  await using other = await composed("store", ["shared"], "other");
  for (const { name } of [mine, other]) await instance.waitFor(name, "attached");
  const { stdout } = await command("failures");
  const fix = "docker network disconnect shared other-store-1";
  assert.match(stdout, /store on network shared is ambiguous\n {2}why: .*shop-store-1 \(project shop\), other-store-1/);
  assert.ok(stdout.includes(`  fix: ${fix}\n`), stdout);
  const doctor = await command("doctor", mine.name);
  assert.equal(doctor.code, 0, doctor.stdout);
  assert.match(doctor.stdout, /^WARNING {2}.*"store" is 2 services on network shared/m);
  assert.ok(doctor.stdout.includes(`Fix now:      ${fix}\n`), doctor.stdout);
  const explained = await command("explain", "store", "--in", mine.name);
  assert.match(explained.stdout.split("\n")[2] ?? "", /^ {2}why: "store" is 2 services on network shared/);
});

test("names of the outside world are apart, and no problem", async () => {
  await using single = await composed("single", ["shop_front"]);
  await instance.waitFor(single.name, "attached");
  await dig(single, "a.nx.test");
  const { isContainerName } = await failureOf("a.nx.test", "does-not-exist");
  assert.equal(isContainerName, false);
  assert.doesNotMatch((await command("failures", single.name)).stdout, /nx\.test/);
  assert.match((await command("failures", single.name, "--all")).stdout, /a\.nx\.test +A +NXDOMAIN +1 /);
  const { code, stdout } = await command("doctor", single.name);
  assert.equal(code, 0, stdout);
  const { failures } = await (await client()).failures(single.name);
  assert.deepEqual(
    failures.map(({ name }) => name),
    ["a.nx.test"],
    "the doctor's own queries are not among them",
  );
});

test("a step of a search list whose lookup succeeds is no failure", async () => {
  await using searching = await runContainer(engine, {
    name: "searching",
    networks: ["shop_front"],
    args: ["--dns-search", "nx.test"],
  });
  await instance.waitFor(searching.name, "attached");
  await dig(searching, "web.nx.test");
  await failureOf("web.nx.test", "does-not-exist");
  await dig(searching, "web");
  const { failures } = await (await client()).failures(searching.name);
  assert.deepEqual(failures, []);
});

test("failures are followed as they happen, and a lookup that servers fail is logged with its name", async () => {
  const control = await client();
  const stop = new AbortController();
  const names: string[] = [];
  for await (const { name, cause } of control.followFailures("shop-api-1", stop.signal)) {
    names.push(name ?? "");
    if (names.length === 1) await dig(api, "a.servfail.test");
    if (name !== "a.servfail.test") continue;
    assert.equal(cause?.code, "upstream-error");
    stop.abort();
  }
  assert.ok(names.includes("a.servfail.test"));
  const line = instance.log.split("\n").find((each) => each.includes("lookup failed")) ?? assert.fail(instance.log);
  const { name, type, container, result } = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual([name, type, container], ["a.servfail.test", "A", "shop-api-1"]);
  assert.match(String(result), /SERVFAIL/);
});
