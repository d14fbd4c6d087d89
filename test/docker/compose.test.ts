// Proves that the commands speak Compose on a real engine: a service stands for its container, one with several is said or
// refused, projects filter, and `dns11 names` lists what a container resolves, as its queries do.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { NameList } from "../../src/api/names.ts";
import type { ContainerStatus } from "../../src/api/status.ts";
import { dataOf, dig, digMany } from "../support/client/dig.ts";
import { type Container, type NetworkAttachment, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import type { CommandResult } from "../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { onTerminal } from "../support/program/terminal.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let web: Container;
let db: Container;
let stopped: Container;
const apis: Container[] = [];

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  for (const name of ["shop_front", "shop_back", "other_default"]) await createNetwork(engine, name);
  web = await composed("web", ["shop_front"]);
  apis.push(await composed("api", ["shop_front", "shop_back"]));
  apis.push(await composed("api", ["shop_front", "shop_back"], { number: 2 }));
  db = await composed("db", ["shop_back"]);
  await composed("db", ["other_default"], { project: "other" });
  await runContainer(engine, { name: "plain" });
  stopped = await composed("worker", ["shop_front"]);
  instance = await startDns11(engine);
  for (const { name } of [web, ...apis, db, stopped]) await instance.waitFor(name, "attached");
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** A container as Compose creates it: its labels, and its service as an alias on each network. */
async function composed(
  service: string,
  networks: readonly string[],
  { project = "shop", number = 1 } = {},
): Promise<Container> {
  return await runContainer(engine, {
    name: `${project}-${service}-${number}`,
    networks: networks.map((name): NetworkAttachment => ({ name, aliases: [service] })),
    labels: { "com.docker.compose.project": project, "com.docker.compose.service": service },
  });
}

async function command(...args: string[]): Promise<CommandResult> {
  return await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir]);
}

async function succeed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(...args);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function namesIn(container: string, ...args: string[]): Promise<NameList> {
  return JSON.parse(await succeed("names", "--in", container, "--json", ...args)) as NameList;
}

test("ps has projects, services and the queries of the last minute; -p and a service filter", async () => {
  const recent = async (): Promise<number[]> => {
    const { queries = 0, nxdomain = 0, failures = 0 } = (await instance.container(web.name))?.recent ?? {};
    return [queries, nxdomain, failures];
  };
  // Where a minute ends in between, what was counted before it counts less.
  await waitFor("three queries more, of which two do not exist, and one is a container's name", async () => {
    const early = await recent();
    await digMany(web, "127.0.0.11", [["db"], ["api"], ["nx.test"]]);
    const grown = (await recent()).map((count, index) => count - (early[index] ?? 0));
    return grown.join() === "3,2,1" ? true : undefined;
  });
  const all = await succeed("ps");
  assert.match(all, /^PROJECT +SERVICE +CONTAINER +STATE +NETWORKS +Q\/MIN +NX +FAIL +WHY$/m);
  assert.match(all, /^shop +web +shop-web-1 +ok +shop_front +\d+ +\d+ +\d+$/m);
  assert.match(all, /^- +- +plain +skipped +bridge/m);
  const rows = JSON.parse(await succeed("ps", "-p", "other", "--json")) as ContainerStatus[];
  assert.deepEqual(
    rows.map(({ name, project, service }) => [name, project, service]),
    [["other-db-1", "other", "db"]],
  );
  assert.match(await succeed("ps", "api"), /shop-api-1[^]*shop-api-2/);
  const unknown = await command("ps", "-p", "shpo");
  assert.deepEqual(
    [unknown.code, unknown.stderr.split("\n")[0]],
    [2, 'dns11: No running container belongs to the Compose project "shpo"; did you mean "shop"?'],
  );
  // Its containers may have names that do not run.
  const names = await command("names", "-p", "shpo");
  assert.deepEqual([names.code, names.stdout], [0, "no names\n"]);
  assert.match(
    names.stderr,
    /^dns11: No running container belongs to the Compose project "shpo"; did you mean "shop"\?\n$/,
  );
});

test("a table of 80 columns fits, whatever is in it", async () => {
  for (const words of [["ps"], ["ps", "-o", "wide"], ["status"], ["names"], ["names", "--in", "web"]]) {
    const { stdout } = await dns11([...words, "-H", engine.host, "--state-dir", instance.stateDir], {
      env: { COLUMNS: "80" },
    });
    for (const line of stdout.split("\n")) assert.ok(line.length <= 80, `${words.join(" ")}: ${line}`);
  }
});

test("--watch repeats on the terminal until q, and in colours; in a pipe it prints lines", async () => {
  const at = ["-H", engine.host, "--state-dir", instance.stateDir];
  for (const [word, title] of [
    ["ps", "CONTAINER"],
    ["status", "nameservers"],
    ["failures", "container"],
  ] as const) {
    // Drawn a second time, over the first.
    const when = new RegExp(`\\u001B\\[H[^]*${title}[^]*\\u001B\\[H[^]*${title}`, "i");
    const shown = await onTerminal([word, "--watch", ...at], { columns: 80, keys: [{ when, press: "q" }] });
    assert.match(shown, /left 0 icanon isig|left 0 isig icanon/);
  }
  const coloured = await onTerminal(["ps", ...at], { columns: 80 });
  assert.ok(coloured.includes("\u001B[32mok\u001B[0m"), coloured);
  assert.ok(!(await onTerminal(["ps", ...at], { env: { NO_COLOR: "1" } })).includes("\u001B["));
});

test("a service stands for its container; of several, the first is used and said", async () => {
  const one = await command("lookup", "api", "--in", "web");
  assert.deepEqual([one.code, one.stderr], [0, ""]);
  assert.match(one.stdout, /^api A in "shop-web-1": NOERROR/);
  const several = await command("explain", "web", "--in", "api");
  assert.equal(
    several.stderr,
    'dns11: "api" is 2 containers: shop-api-1, shop-api-2; using shop-api-1 (--each uses all of them)\n',
  );
  assert.match(several.stdout, /^web \(A\) in shop-api-1: [\d.]+ {2}shop-web-1 \(project shop\)/);
  const each = await command("explain", "web", "--in", "api", "--each", "--json");
  assert.deepEqual(
    each.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { container: { name: string } }).container.name),
    ["shop-api-1", "shop-api-2"],
  );
  const [other, mine] = [
    await command("lookup", "db", "--in", "db", "-p", "other"),
    await command("names", "--in", "db"),
  ];
  assert.match(other.stdout, /^db A in "other-db-1": NOERROR/);
  assert.match(mine.stderr, /"db" is 2 containers: other-db-1, shop-db-1; using other-db-1/);
});

test("queries and failures are filtered by service and project", async () => {
  for (const { name, ip } of [...apis, web].map((each) => ({ name: `of-${each.name}.nx.test`, ip: each })))
    await dig(ip, name);
  const tail = async (...args: string[]): Promise<string> =>
    await succeed("tail", "-n", "50", "--name", "of-*", ...args);
  assert.match(await tail("api"), /of-shop-api-1[^]*of-shop-api-2/);
  assert.doesNotMatch(await tail("api"), /of-shop-web-1/);
  assert.match(await tail("-p", "shop"), /of-shop-web-1/);
  assert.equal(await tail("-p", "other"), "");
  await dig(web, "db");
  assert.match(await succeed("failures", "web"), /shop-web-1 +db /);
  assert.match(await succeed("failures", "-p", "shop"), /shop-web-1 +db /);
  assert.equal(await succeed("failures", "-p", "other"), "no container's name fails\n");
});

test("what changes something refuses a service with several containers", async () => {
  const { code, stderr } = await command("doctor", "api", "--fix");
  assert.equal(code, 2, stderr);
  assert.equal(stderr, 'dns11: "api" is 2 containers: shop-api-1, shop-api-2\n  Use the name of one of them.\n');
  const { stdout } = await command("doctor", "api", "--all");
  assert.match(stdout, /^shop-api-1$[^]*^shop-api-2$/m);
  const project = await command("doctor", "-p", "other", "--all");
  assert.match(project.stdout, /^other-db-1$/m);
  assert.doesNotMatch(project.stdout, /^shop-/m);
});

test("names lists what a container resolves, and what it does not", async () => {
  const { networks, names } = await namesIn("web");
  assert.deepEqual(networks, ["shop_front"]);
  const api = names.find(({ name }) => name === "api");
  assert.deepEqual(api?.owners.map(({ container, project, service }) => [container, project, service]).toSorted(), [
    ["shop-api-1", "shop", "api"],
    ["shop-api-2", "shop", "api"],
  ]);
  const elsewhere = names
    .filter(({ name }) => name === "db")
    .map(({ network, state, owners }) => `${network} ${state} ${owners[0]?.container}`);
  assert.deepEqual(elsewhere.toSorted(), [
    "other_default other-network other-db-1",
    "shop_back other-network shop-db-1",
  ]);
  assert.equal(names.find(({ name }) => name === "plain")?.state, "no-network");
  const replies = await digMany(
    web,
    "127.0.0.11",
    names.map(({ name }) => [name]),
  );
  for (const [index, { name, state, addresses, isId }] of names.entries()) {
    const reply = replies[index] ?? assert.fail(name);
    assert.deepEqual(
      state === "resolves" ? [...addresses].toSorted() : [],
      dataOf(reply).toSorted(),
      `${name}${isId ? " (an ID)" : ""}`,
    );
  }
});

test("names of a stopped container, of the engine by network, and of a project", async () => {
  await stopped.stop();
  const worker = await waitFor("worker to be gone", async () => {
    const { names } = await namesIn("web");
    return names.find(({ name, state }) => name === "worker" && state === "not-running");
  });
  assert.deepEqual(worker.addresses, []);
  assert.match(await succeed("names", "--in", "web"), /^worker +not running +shop-worker-1 +shop +shop_front$/m);
  const all = await succeed("names");
  assert.match(all, /^NETWORK +NAME +ADDRESS +CONTAINER +PROJECT$/m);
  assert.match(all, /^other_default +db +\S+ +other-db-1 +other$/m);
  assert.match(all, /^shop_back +db +\S+ +shop-db-1 +shop$/m);
  const other = await succeed("names", "-p", "other");
  assert.doesNotMatch(other, /shop-/);
  await stopped.start();
  await instance.waitFor(stopped.name, "attached");
});

test("status is the health in eight lines, or one container's state", async () => {
  const lines = (await succeed("status")).trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => line.split(" ")[0]),
    ["dns11", "engine", "containers", "nameservers", "queries", "failing", "rules", "settings"],
  );
  assert.match(lines.join("\n"), /^containers +\d of \d served, 1 skipped$/m);
  assert.match(await succeed("status", "web"), /^container +shop-web-1 [^]*^compose +project shop, service web$/m);
  const complete = async (first: string, ...rest: string[]): Promise<string> => {
    const words = [first, "-H", engine.host, "--state-dir", instance.stateDir, ...rest];
    return (await dns11(["__complete", ...words])).stdout;
  };
  const stdout = await complete("lookup", "web", "--in", "");
  for (const word of ["web", "api", "shop-api-1", "plain"]) assert.ok(stdout.split("\n").includes(word), stdout);
  assert.deepEqual((await complete("ps", "-p", "")).split("\n").slice(0, 2), ["other", "shop"]);
});
