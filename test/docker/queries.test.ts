// Query history: tail, top and ps show each query once with its result, also of a removed container; names never reach a
// terminal unescaped; and the privacy settings apply at once.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { QueryReport } from "../../src/api/queries.ts";
import type { CommandResult } from "../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import type { Snapshot } from "../../cmd/top/query-statistics.ts";
import { dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11, WITHOUT_KEEPER } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { TailCommand } from "../support/program/tail.ts";
import { onTerminal } from "../support/program/terminal.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

// Escape sequences that clear the screen, set a colour and the window title, in dig's notation.
const EVIL = "\\027[2J\\027[31m\\155\\027]0;owned\\007.evil.nx.test";

const ESC = "\u001B";
// The escape sequences that dns11 itself uses: screen, cursor and colours.
const OURS = new RegExp(`${ESC}\\[(?:\\?1049[hl]|\\?25[hl]|\\?7[hl]|[HKJ]|(?:0|1|2|7|31|32|33)m)`, "g");
const COLOUR = new RegExp(`${ESC}\\[\\d+m`);

const folder = mkdtempSync(join(tmpdir(), "d11-queries-"));
let engine: Engine;
let upstream: Upstream;
let web: Container;
let db: Container;
let instance: Dns11;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  for (const name of ["n1", "n2"]) await createNetwork(engine, name);
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  db = await runContainer(engine, { name: "db", networks: ["n1"] });
  await runContainer(engine, { name: "plain" });
  instance = await startDns11(engine, { env: WITHOUT_KEEPER });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("each query is listed once with its result and upstream, and probes are not listed", async () => {
  await dig(web, "Db");
  await dig(web, "one.ok.test");
  await dig(web, "one.ok.test", "+tcp");
  await dig(web, "one.nx.test", "MX");
  await dig(web, "one.servfail.test");
  const { stdout } = await command(["tail", "web", "-n", "20", "--json"]);
  const queries = reportsIn(stdout);
  assert.deepEqual(
    queries.map(({ name, type, rcode, result, transport, answers }) => [name, type, rcode, result, transport, answers]),
    [
      ["Db", "A", "NOERROR", "local", "udp", 1],
      ["one.ok.test", "A", "NOERROR", "forwarded", "udp", 1],
      ["one.ok.test", "A", "NOERROR", "cached", "tcp", 1],
      ["one.nx.test", "MX", "NXDOMAIN", "forwarded", "udp", 0],
      ["one.servfail.test", "A", "SERVFAIL", "failed", "udp", 0],
    ],
  );
  assert.deepEqual(
    queries.map((query) => query.upstream),
    [null, "host(127.0.0.1)", null, "host(127.0.0.1)", null],
  );
  assert.deepEqual(
    queries.map(({ ms }) => ms > 0),
    [false, true, false, true, true],
  );
  const [first = 0] = queries.map(({ seq }) => seq);
  assert.deepEqual(
    queries.map(({ seq }) => seq - first),
    [0, 1, 2, 3, 4],
  );
});

test("tail prints the last queries, filtered by name and rcode", async () => {
  for (const name of ["alpha.ok.test", "alpha.nx.test", "beta.nx.test", "beta.servfail.test"]) await dig(db, name);
  const { stdout } = await command(["tail", "db", "-n", "20", "--name", "*A.NX.test", "--rcode", "nxdomain,2"]);
  const lines = stdout.trimEnd().split("\n");
  assert.equal(lines.length, 3);
  assert.match(lines[0] ?? "", /^TIME +CONTAINER +RESULT +SOURCE +TOOK  TYPE +NAME  ANSWER$/);
  assert.match(
    lines[1] ?? "",
    /^\d\d:\d\d:\d\d\.\d{3}  db {2,}NXDOMAIN  forwarded +[\d.]+ ms  A +alpha\.nx\.test  "alpha\.nx\.test" does not exist, according to its upstream servers \(host\(127\.0\.0\.1\)\)  from host\(127\.0\.0\.1\)$/,
  );
  const failed = await command(["tail", "db", "-n", "20", "--rcode", "SERVFAIL"]);
  assert.match(
    failed.stdout,
    /SERVFAIL  failed .* beta\.servfail\.test  host\(127\.0\.0\.1\) answered SERVFAIL for "beta\.servfail\.test"/,
  );
  const last = await command(["tail", "-n", "1"]);
  assert.match(last.stdout, /^TIME [^\n]*\n[^\n]* beta\.servfail\.test  [^\n]*\n$/);
});

test("tail shows the addresses of answers, their containers, and the cause of a failure without a query of its own", async () => {
  await using lone = await runContainer(engine, { name: "lone", networks: ["n2"] });
  await instance.waitFor(lone.name, "attached");
  for (const name of ["Db", "lone", "own.ok.test"]) await dig(web, name);
  const asJson = reportsIn((await command(["tail", "web", "-n", "3", "--json"])).stdout);
  const owner = { address: db.address("n1"), container: "db", network: "n1", project: null, service: null };
  assert.deepEqual([asJson[0]?.addresses, asJson[0]?.owners, asJson[0]?.cause], [[owner.address], [owner], undefined]);
  assert.equal(asJson[1]?.cause?.code, "other-network");
  assert.deepEqual([asJson[2]?.addresses.length, asJson[2]?.owners], [1, []]);
  const { stdout } = await command(["tail", "web", "-n", "3"]);
  assert.ok(stdout.includes(` Db  ${owner.address} db  ttl 5\n`), stdout);
  assert.match(stdout, / lone  "lone" is container lone on network n2; web is not on n2 /);
  const again = reportsIn((await command(["tail", "web", "-n", "3", "--json"])).stdout);
  assert.deepEqual(
    again.map(({ seq }) => seq),
    asJson.map(({ seq }) => seq),
  );
});

test("tail follows queries in their order, for the selected containers", async () => {
  await using all = new TailCommand(engine, instance, []);
  await using ofWeb = new TailCommand(engine, instance, ["web", "-f", "-n", "1", "--name", "*.order.ok.test"]);
  await all.started(async () => await dig(db, "begun.ok.test"));
  await ofWeb.started(async () => await dig(web, "begun.order.ok.test"));
  for (const [container, name] of [
    [db, "1.order.ok.test"],
    [web, "2.order.ok.test"],
    [db, "3.order.ok.test"],
    [web, "4.order.ok.test"],
  ] as const) {
    await dig(container, name);
  }
  await all.until(1, "4.order.ok.test");
  const followed = all.queries(".order.ok.test").filter(({ name }) => !name?.startsWith("begun"));
  assert.deepEqual(
    followed.map(({ container, name }) => `${container} ${name}`),
    ["db 1.order.ok.test", "web 2.order.ok.test", "db 3.order.ok.test", "web 4.order.ok.test"],
  );
  await ofWeb.until(1, "4.order.ok.test");
  assert.deepEqual(ofWeb.queries("db.order.ok.test"), []);
  assert.ok(ofWeb.queries("").every(({ container }) => container === "web"));
  assert.equal(await all.ended("SIGINT"), 0);
});

test("queries of a new container are followed, and stay listed after it is removed", async () => {
  await using all = new TailCommand(engine, instance, []);
  await all.started(async () => await dig(db, "begun.ok.test"));
  {
    await using brief = await runContainer(engine, { name: "brief", networks: ["n1"] });
    await instance.waitFor("brief", "attached");
    await dig(brief, "last-words.ok.test");
  }
  await waitFor("brief to be gone", async () => ((await instance.container("brief")) === undefined ? true : undefined));
  const [followed] = await all.until(1, "last-words.ok.test");
  assert.equal(followed?.container, "brief");
  const listed = reportsIn((await command(["tail", "brief", "-n", "20", "--json"])).stdout);
  assert.deepEqual(
    listed.map(({ container, name }) => [container, name]),
    [["brief", "last-words.ok.test"]],
  );
});

test("tail fails with a reason for containers without queries and for invalid options", async () => {
  for (const [args, expected, message] of [
    [["tail", "nobody"], 2, /No running container or service named "nobody"/],
    [["tail", "plain"], 1, /dns11 does not serve "plain": it is on no user-defined network/],
    [["tail", "--rcode", "bogus"], 2, /Invalid response code "bogus": use one of NOERROR, /],
  ] as const) {
    const { code, stderr } = await command(args);
    assert.deepEqual([code, message.test(stderr)], [expected, true], stderr);
  }
  assert.equal((await command(["tail", "--last", "many"])).code, 2);
});

test("a container that there is not is the same mistake for every command", async () => {
  for (const words of [
    "status nobody",
    "ps nobody",
    "top nobody --once",
    "failures nobody",
    "names --in nobody",
    "doctor nobody",
  ]) {
    const { code, stderr } = await command(words.split(" "));
    assert.deepEqual(
      [code, /No running container or service named "nobody"/.test(stderr)],
      [2, true],
      `${words}: ${stderr}`,
    );
  }
});

test("top shows one container, if one is named", async () => {
  await dig(web, "one.ok.test");
  await dig(db, "two.ok.test");
  const { stdout } = await command(["top", "web", "--once", "--json"]);
  const { containers, names } = JSON.parse(stdout) as Snapshot;
  assert.deepEqual(
    containers.map(({ container }) => container),
    ["web"],
  );
  assert.ok(names.some(({ name }) => name === "one.ok.test") && names.every(({ name }) => name !== "two.ok.test"));
});

test("escape sequences in names are printed escaped by tail and top, on a terminal and elsewhere", async () => {
  await dig(web, EVIL);
  await dig(db, EVIL);
  const written = "\\027[2J\\027[31m\\155\\027]0\\;owned\\007.evil.nx.test";
  const tail = await command(["tail", "-n", "20", "--name", "*evil*"]);
  assert.ok(tail.stdout.includes(written), tail.stdout);
  assert.doesNotMatch(tail.stdout, /[^\P{Cc}\n]/u);
  const top = await command(["top", "--once"]);
  assert.match(top.stdout, /^\\027\[2J\\\.\./m, "and without its middle");
  assert.doesNotMatch(top.stdout, /[^\P{Cc}\n]/u);
  const json = await command(["top", "--once", "--json"]);
  assert.ok((JSON.parse(json.stdout) as { names: { name: string }[] }).names.some(({ name }) => name === written));
  // On a terminal there are escape sequences, but none from the name.
  for (const args of [["tail", "-n", "20", "--name", "*evil*"], ["top"]]) {
    const output = await terminal(args);
    assert.doesNotMatch(output.replaceAll(OURS, ""), /[^\P{Cc}\r\n]/u);
    assert.ok(output.includes("\\027[2J\\027[31m"), output);
    assert.ok(!output.includes(`${ESC}[2J`));
  }
});

for (const press of ["q", "\u0003"]) {
  test(`top uses the whole terminal, and restores it at ${press === "q" ? "q" : "Ctrl-C"}`, async () => {
    const output = await terminal(["top"], press);
    assert.ok(output.startsWith(`${ESC}[?1049h${ESC}[?25l`), output);
    assert.ok(output.endsWith(`${ESC}[?25h${ESC}[?1049lleft 0 isig icanon \r\n`), output);
    assert.match(output, /CONTAINER +Q\/S/);
    assert.match(output, COLOUR);
  });
}

test("top explains the selected name: enter on a row that fails", async () => {
  await using alone = await runContainer(engine, { name: "alone", networks: ["n2"] });
  await instance.waitFor(alone.name, "attached");
  await dig(web, alone.name);
  const words = ["top", "-H", engine.host, "--state-dir", instance.stateDir];
  const output = await onTerminal(words, {
    keys: [
      { when: /NAME +FROM/, press: "?" },
      { when: /Keys of dns11 top/, press: "x" },
      // Failing names of containers are first when sorted by failures; the filter leaves this one.
      { when: /NAME +FROM/, press: "s/alone" },
      { when: /\/alone_/, press: "\r\t" },
      { when: /sort: fail {2}filter: alone/, press: "\r" },
      { when: /why +"alone" is container alone on network n2; web is not on n2/, press: "x" },
      { when: /NAME +FROM/, press: "q" },
    ],
  });
  assert.match(output, /alone \(A\) in web: NXDOMAIN/);
  assert.match(output, /fix +docker network connect n2 web/);
  assert.ok(output.endsWith(`${ESC}[?25h${ESC}[?1049lleft 0 isig icanon \r\n`), output.slice(-200));
});

test("with NO_COLOR there are no colours", async () => {
  for (const args of [["top"], ["tail", "-n", "20"]]) {
    assert.doesNotMatch(await terminal(args, "q", { NO_COLOR: "1" }), COLOUR);
  }
});

test("top sums up queries by container and by name", async () => {
  // Those of the last minute count.
  for (const from of [web, db]) {
    for (const name of ["sum.evil.nx.test", "sum.evil.nx.test", "app.ok.test"]) await dig(from, name);
  }
  const { containers, names, all } = JSON.parse((await command(["top", "--once", "--json"])).stdout) as {
    readonly containers: readonly { readonly container: string; readonly queries: number; readonly p99Ms: number }[];
    readonly names: readonly { readonly name: string; readonly queries: number; readonly containers: number }[];
    readonly all: { readonly p50Ms: number; readonly perSecond: number };
  };
  assert.ok(containers.some(({ container, queries, p99Ms }) => container === "web" && queries > 0 && p99Ms > 0));
  assert.ok(
    names.some(({ name, queries, containers: from }) => name.endsWith(".evil.nx.test") && queries >= 2 && from === 2),
  );
  assert.ok(all.p50Ms > 0 && all.perSecond >= 0);
});

test("ps -a is taken as every container, and says where those are that do not run", async () => {
  const { code, stdout, stderr } = await command(["ps", "-a"]);
  assert.deepEqual(
    [code, stderr],
    [0, "dns11: every running container is listed; docker ps -a lists those that do not run\n"],
  );
  assert.match(stdout, /^web /m);
});

test("-o json is --json, and another format an error", async () => {
  const [one, other] = [
    await command(["names", "--in", "web", "-o", "json"]),
    await command(["names", "--in", "web", "--json"]),
  ];
  assert.equal(one.stdout, other.stdout);
  assert.equal((await command(["ps", "-o", "yaml"])).code, 2);
});

test("ps lists every container with its state and rules, or the reason why it is skipped", async () => {
  const containers = JSON.parse((await command(["ps", "--json"])).stdout) as Record<string, unknown>[];
  assert.deepEqual(
    containers.map(({ name, state, rules, code }) => [name, state, rules, code]),
    [
      ["db", "attached", "nft-owner", undefined],
      ["plain", "skipped", null, "default-network-only"],
      ["web", "attached", "nft-owner", undefined],
    ],
  );
  const short = await command(["ps"]);
  assert.match(short.stdout, /^CONTAINER +STATE +NETWORKS +Q\/MIN +NX +FAIL +WHY$/m);
  assert.match(short.stdout, /^web +ok +\S+ +\d+ +\d+ +\d+$/m);
  const { stdout } = await command(["ps", "-o", "wide"]);
  assert.match(
    stdout,
    /^web +ok .* \d+[sm] +\d+[sm] ago +nft-owner +\d+\/udp \d+\/tcp +[1-9]\d* .*host\(127\.0\.0\.1\)$/m,
  );
  assert.match(stdout, /^plain +skipped +bridge .* it is on no user-defined network/m);
});

test("queries.names: hidden removes past names, off disables the history, and both apply at reload", async () => {
  const config = join(folder, "dns11.yaml");
  writeFileSync(config, "version: 1\nqueries: {log: true}\n");
  await instance.stop();
  await using other = await startDns11(engine, { args: ["--config", config], env: WITHOUT_KEEPER });
  const tail = async (...args: string[]): Promise<CommandResult> => await command(["tail", ...args], other);
  await dig(web, "secret.ok.test");
  assert.match((await tail("web", "-n", "20")).stdout, / secret\.ok\.test /);
  await waitFor("the log line", () =>
    /"name":"secret\.ok\.test"[^\n]*"msg":"query"/.test(other.log) ? true : undefined,
  );
  await reload(other, config, "queries: {names: hidden, log: true}");
  assert.equal((await tail("web", "-n", "20")).stdout, "");
  await dig(web, "second.ok.test", "AAAA");
  const { stdout } = await tail("web", "-n", "20");
  assert.match(stdout, /NOERROR +forwarded .* AAAA +\(no name\)/);
  assert.doesNotMatch(stdout, /second/);
  await waitFor("the log line without a name", () =>
    /"type":"AAAA"[^\n]*"msg":"query"/.test(other.log) ? true : undefined,
  );
  assert.doesNotMatch(other.log, /second\.ok\.test/);
  await reload(other, config, "queries: {names: off}");
  await dig(web, "third.ok.test");
  const { code, stderr } = await tail("web", "-n", "20");
  assert.deepEqual([code, /no query history, because queries\.names is off/.test(stderr)], [1, true], stderr);
  assert.equal((await command(["top", "--once"], other)).code, 1);
  const { settings } = await other.status();
  assert.deepEqual(settings["queries.names"], { value: "off", source: "file" });
  writeFileSync(config, "version: 1\nqueries: {names: sometimes, log: 3}\n");
  const wrong = await dns11(["check-config", config]);
  assert.match(
    wrong.stdout + wrong.stderr,
    /queries\.names: invalid value "sometimes": use one of full, hidden, off[\s\S]*queries\.log: invalid value 3/,
  );
});

test("tail exits with a message when dns11 stops", async () => {
  await using brief = await startDns11(engine, { env: WITHOUT_KEEPER });
  await using all = new TailCommand(engine, brief, []);
  await all.started(async () => await dig(db, "begun.ok.test"));
  await brief.stop();
  assert.equal(await all.ended(), 1);
  assert.match(all.stderr, /dns11 has stopped/);
});

async function reload(running: Dns11, config: string, setting: string): Promise<void> {
  const times = (running.log.match(/settings reloaded/g) ?? []).length;
  writeFileSync(config, `version: 1\n${setting}\n`);
  running.kill("SIGHUP");
  await waitFor("the settings to be reloaded", () =>
    (running.log.match(/settings reloaded/g) ?? []).length > times ? true : undefined,
  );
}

async function command(args: readonly string[], of: Dns11 = instance): Promise<CommandResult> {
  return await dns11([...args, "-H", engine.host, "--state-dir", of.stateDir]);
}

// top exits at a key, tail on its own.
async function terminal(args: readonly string[], press = "q", env: NodeJS.ProcessEnv = {}): Promise<string> {
  const words = [...args, "-H", engine.host, "--state-dir", instance.stateDir];
  return await onTerminal(words, { env, ...(args[0] === "top" && { keys: [{ when: /NAME +FROM/, press }] }) });
}

function reportsIn(text: string): QueryReport[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as QueryReport);
}
