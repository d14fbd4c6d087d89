// dns11 explain: for a table of questions, the explained answer is the one that dig gets, from the expected layer; and hints
// name the likely cause of an unexpected answer.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { Explanation } from "../../src/api/names.ts";
import { PROGRAM } from "../support/program/built.ts";
import { type CommandResult, run } from "../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { type Dns11, dns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { startScripted } from "../support/scripted/scripted.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const HOST_SERVER = "127.0.0.1";
const folder = makeFolder("explain");
const config = join(folder, "settings.yaml");

let engine: Engine;
let upstream: Upstream;
let web: Container;
let dark: Container;
let app: Container;
const shared = new SharedDns11(() => engine);

before(async () => {
  writeFileSync(config, "version: 1\ndns: [host, /lan/]\n");
  engine = await startEngine({ resolvConf: `nameserver ${HOST_SERVER}\n` });
  upstream = await startUpstream(engine);
  for (const name of ["n1", "n2", "br.net1"]) await createNetwork(engine, name);
  await createNetwork(engine, "inside", { internal: true });
  web = await runContainer(engine, { name: "web", networks: [{ name: "n1", aliases: ["Front", "shared"] }] });
  await runContainer(engine, { name: "db", networks: [{ name: "n1", aliases: ["shared"] }] });
  await runContainer(engine, { name: "c1.net1", networks: ["n1", "br.net1"] });
  await runContainer(engine, { name: "elsewhere", networks: ["n2"] });
  await runContainer(engine, { name: "plain" });
  dark = await runContainer(engine, { name: "dark", networks: ["inside"] });
  app = await runContainer(engine, {
    name: "app",
    networks: [{ name: "n1", links: ["web:Backend", "nobody:db"] }, "br.net1"],
  });
  await runContainer(engine, { name: "sidecar", args: ["--network", "container:app"] });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function command(instance: Dns11, ...args: string[]): Promise<CommandResult> {
  return await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir]);
}

async function explain(instance: Dns11, name: string, type: string, container = "app"): Promise<Explanation> {
  return await instance.client.explain({
    container,
    name,
    type,
  });
}

// The question, and the layer that must answer it: by default, and with --strict.
const CASES: readonly (readonly [name: string, type: string, byDefault: string, strict: string])[] = [
  ["web", "A", "names", "names"],
  ["WEB", "A", "names", "names"],
  ["front", "A", "names", "names"],
  ["shared", "A", "names", "names"],
  ["web.n1", "A", "names", "names"],
  ["web", "AAAA", "names", "names"],
  ["web", "TXT", "names", "servers"],
  ["c1.net1", "A", "names", "names"],
  ["c1.net1", "CAA", "servers", "servers"],
  ["Backend", "A", "links", "links"],
  ["backend", "A", "links", "servers"],
  ["db", "A", "names", "servers"],
  ["localhost", "A", "special", "servers"],
  ["localhost", "AAAA", "special", "servers"],
  ["hidden.onion", "A", "special", "servers"],
  ["printer.lan", "A", "route", "route"],
  ["7.ok.test", "A", "servers", "servers"],
  ["27.ok.test", "AAAA", "servers", "servers"],
  ["7.ok.test", "MX", "servers", "servers"],
  ["7.ok.test", "TXT", "servers", "servers"],
  ["a.cname.test", "A", "servers", "servers"],
  ["a.nodata.test", "A", "servers", "servers"],
  ["a.nx.test", "A", "servers", "servers"],
  ["a.servfail.test", "A", "servers", "servers"],
  ["a.tc.test", "A", "servers", "servers"],
  ["a.rr.test", "TYPE4711", "servers", "servers"],
];

for (const [mode, args] of [
  ["by default", []],
  ["with --strict", ["--strict"]],
] as const) {
  test(`${mode}, the explained answer is the one that dig gets, from the expected layer`, async () => {
    const instance = await shared.with(["--config", config, ...args]);
    for (const [name, type, byDefault, strict] of CASES) {
      const explained = await explain(instance, name, type);
      const reply = await dig(app, name, type, "+bufsize=1232");
      const what = `${name} ${type}: ${JSON.stringify(explained)}\n${reply.raw}`;
      assert.equal(explained.reply?.rcode, reply.status, what);
      const answers = (explained.reply?.answers ?? []).map((each) => `${each.name} ${each.type} ${each.data}`);
      const dug = reply.answer.map((each) => `${each.name} ${each.type} ${each.data}`);
      assert.deepEqual(normalized(answers), normalized(dug), what);
      assert.equal(explained.reply?.authority.length, reply.authority.length, what);
      const isFailed = explained.reply?.rcode === "SERVFAIL";
      assert.equal(explained.answeredBy, isFailed ? null : args.length > 0 ? strict : byDefault, what);
    }
  });
}

// dig prints octets in upper case, and the order of several addresses changes.
function normalized(records: readonly string[]): string[] {
  return records.map((record) => record.toLowerCase()).toSorted();
}

test("an IP address as NAME explains its reverse lookup", async () => {
  const instance = await shared.with();
  const { stdout } = await command(instance, "explain", web.address("n1"), "--in", "app", "--json");
  const explained = JSON.parse(stdout) as Explanation;
  assert.deepEqual([explained.answeredBy, explained.question.type], ["reverse", "PTR"]);
  const [pointer] = (await dig(app, "-x", web.address("n1"))).answer;
  assert.equal(explained.reply?.answers[0]?.data, pointer?.data);
});

test("a reply is explained as from a server the first time, and as a cache hit with its times the second time", async () => {
  const instance = await shared.with();
  const first = await explain(instance, "kept.ok.test", "A");
  const { length: times } = await upstream.queriesFor("kept.ok.test");
  assert.deepEqual([first.answeredBy, first.server], ["servers", `host(${HOST_SERVER})`]);
  const events = first.steps.find(({ layer }) => layer === "servers")?.events ?? [];
  assert.deepEqual(
    events.map(({ what }) => /^(sent over udp: first in order|answered NOERROR)/.exec(what)?.[1]).filter(Boolean),
    ["sent over udp: first in order", "answered NOERROR"],
  );
  const order = first.steps.map(({ layer }) => layer);
  assert.deepEqual(order, ["links", "names", "names", "reverse", "route", "special", "cache", "servers", "cache"]);
  const second = await explain(instance, "kept.ok.test", "A");
  assert.equal(second.answeredBy, "cache");
  assert.match(second.steps.at(-1)?.why ?? "", /^hit: stored \d+\.\d s ago, expires in \d+\.\d s$/);
  assert.equal((await upstream.queriesFor("kept.ok.test")).length, times);
});

test("for a container without an external network, the skipped servers are explained", async () => {
  const instance = await shared.with();
  const explained = await explain(instance, "7.ok.test", "A", "dark");
  assert.equal((await dig(dark, "7.ok.test")).status, explained.reply?.rcode);
  assert.deepEqual(
    explained.reply?.extendedErrors.map(({ code }) => code),
    [18],
  );
  const why = explained.steps.filter(({ layer }) => layer === "route").map((step) => step.why);
  assert.match(why.at(-1) ?? "", /^host\(127\.0\.0\.1\) skipped: .*no external network$/);
});

test("the events of a silent server and of the one queried after it are listed in order of time", async () => {
  const [silent, good] = ["127.1.0.1", "127.1.0.2"];
  await using client = await runContainer(engine, { name: "client", networks: ["n1"], dns: [silent, good] });
  await using servers = await startScripted(client, "server 1: silent\nserver 2: ok", { addresses: [silent, good] });
  const instance = await shared.with();
  await servers.forget();
  const { steps, server, answeredBy } = await explain(instance, "x.test", "A", "client");
  assert.deepEqual([answeredBy, server], ["servers", good]);
  assert.match(
    steps.find(({ layer }) => layer === "route")?.why ?? "",
    /\(--dns of the container\): 127\.1\.0\.1, 127\.1\.0\.2$/,
  );
  const events = steps.flatMap(({ events: each = [] }) => each);
  const words = events.map((event) => `${event.server ?? ""} ${event.what.split(":")[0] ?? ""}`);
  const at = (word: RegExp): number => words.findIndex((text) => word.test(text));
  const places = [
    /1\.0\.1 position 1/,
    /1\.0\.2 position 2/,
    /1\.0\.1 sent over udp/,
    /1\.0\.2 sent over udp/,
    /1\.0\.2 answered/,
  ];
  assert.deepEqual(
    places.map(at),
    places.map(at).toSorted((a, b) => a - b),
    words.join("\n"),
  );
  assert.ok(at(places[0] as RegExp) >= 0, words.join("\n"));
  const queried = (await servers.queries()).filter(({ name }) => name === "x.test").map((each) => each.server);
  // A busy machine may send it again.
  assert.deepEqual(queried.slice(0, 2), [1, 2]);
});

test("hints for a name that does not resolve name the likely cause", async () => {
  const instance = await shared.with();
  await using gone = await runContainer(engine, { name: "gone", networks: ["n1"] });
  await instance.waitFor("gone", "attached");
  const hints = async (name: string, container = "app"): Promise<string> =>
    (await explain(instance, name, "A", container)).hints.join("\n");
  assert.match(
    await hints("elsewhere"),
    /is container elsewhere on network n2; app is not on n2.*docker network connect n2 app/,
  );
  assert.match(await hints("elsewhere.n2"), /is container elsewhere on network n2/);
  assert.match(await hints("wbe"), /there is "web" on the networks of app/);
  assert.match(await hints("plain"), /on no user-defined network/);
  await gone.stop();
  const stopped = async (): Promise<string> => await hints("gone");
  await waitFor("its end to be known", async () =>
    /"gone" is container gone, which exited with code \d+, /.test(await stopped()) ? true : undefined,
  );
  assert.equal(await hints("web"), "");
});

test("a search list that changes the names that programs query is a hint", async () => {
  await using searching = await runContainer(engine, {
    name: "searching",
    networks: ["n1"],
    args: ["--dns-search", "ok.test", "--dns-option", "ndots:2"],
  });
  const instance = await shared.with();
  const { hints } = await explain(instance, "a.b", "A", searching.name);
  assert.match(hints.join("\n"), /query "a\.b\.ok\.test" before "a\.b".*ndots:2/);
});

test("a container in another's namespace is explained like that one", async () => {
  const instance = await shared.with();
  const { container, answeredBy } = await explain(instance, "web", "A", "sidecar");
  assert.deepEqual([container.name, container.sharedWith, answeredBy], ["sidecar", "app", "names"]);
});

test("a container that is not served is explained from inside, with the reason and the cause", async () => {
  const server = "127.1.0.1";
  await using alone = await runContainer(engine, { name: "alone", dns: [server] });
  await using _ = await startScripted(alone, "server 1: nxdomain", { addresses: [server] });
  const instance = await shared.with();
  const { code, stdout } = await command(instance, "explain", "web", "alone");
  assert.equal(code, 0);
  const [head, why, fix, ...rest] = stdout.split("\n");
  assert.equal(head, "web (A) in alone: NXDOMAIN");
  assert.equal(why, '  why       "web" is container web on network n1; alone is not on n1');
  assert.equal(fix, "  fix       docker network connect n1 alone");
  assert.match(rest.join("\n"), /note +dns11 does not serve "alone": it is on no user-defined network/);
  assert.match(rest.join("\n"), /path +127\.1\.0\.1 \(resolv\.conf\) -> NXDOMAIN in /);
});

test("the text output is the answer, its cause, the fix and the path; -v adds the steps", async () => {
  const instance = await shared.with();
  const { code, stdout } = await command(instance, "explain", "elsewhere", "--in", "app");
  assert.equal(code, 0);
  const [head, why, fix, path, ...rest] = stdout.split("\n");
  assert.equal(head, "elsewhere (A) in app: NXDOMAIN");
  assert.equal(why, '  why       "elsewhere" is container elsewhere on network n2; app is not on n2');
  assert.equal(fix, "  fix       docker network connect n2 app");
  assert.match(
    path ?? "",
    /^ {2}path {6}links - names - cache - host\(127\.0\.0\.1\) -> NXDOMAIN in \d+\.\d ms {2}\(-v shows each step\)$/,
  );
  assert.deepEqual(rest, [""]);
  const verbose = (await command(instance, "explain", "other", "app", "-v")).stdout;
  assert.match(verbose, /\nnetworks: br\.net1, n1\n/);
  assert.match(verbose, /\n\nSTEP +ANSWERED +WHY\nlinks +no /);
  assert.match(verbose, /\nservers +yes +answered by host\(127\.0\.0\.1\)\n +\d+\.\d ms /);
});

test("several names are explained in order, and addresses are shown with their containers", async () => {
  const instance = await shared.with();
  const { stdout, code } = await command(instance, "explain", "web", "shared", "elsewhere", "app", "--fail");
  assert.equal(code, 1, "one of them does not resolve");
  assert.equal((await command(instance, "explain", "web", "shared", "app", "--fail")).code, 0);
  assert.equal((await command(instance, "explain", "7.cname.test", "app", "--fail", "-t", "SRV")).code, 1);
  const blocks = stdout.split("\n\n");
  assert.equal(blocks.length, 3);
  assert.ok(blocks[0]?.startsWith(`web (A) in app: ${web.address("n1")}  web\n  path      `), blocks[0]);
  assert.match(blocks[1] ?? "", /^shared \(A\) in app: 2 addresses\n {2}[\d.]+ {2}(web|db)\n {2}[\d.]+ {2}(web|db)\n/);
  assert.match(blocks[2] ?? "", /^elsewhere \(A\) in app: NXDOMAIN\n/);
  const { owners } = await explain(instance, "web", "A");
  const owner = { address: web.address("n1"), container: "web", network: "n1", project: null, service: null };
  assert.deepEqual(owners, [owner]);
  const asJson = (await command(instance, "explain", "web", "db", "app", "--json")).stdout.trimEnd().split("\n");
  assert.deepEqual(
    asJson.map((line) => (JSON.parse(line) as Explanation).question.name),
    ["web", "db"],
  );
});

test("an answer of an upstream server to a container's name elsewhere is explained as shadowed", async () => {
  await using world = await runContainer(engine, { name: "world", networks: ["n2"] });
  await using lost = await runContainer(engine, { name: "7.ok.test", networks: ["n2"] });
  const instance = await shared.with();
  const { stdout } = await command(instance, "explain", lost.name, "app");
  const [head, why, fix] = stdout.split("\n");
  assert.match(head ?? "", /^7\.ok\.test \(A\) in app: [\d.]+ {2}no container of this engine$/);
  assert.match(
    why ?? "",
    /^ {2}why {7}the answer is not a container's: an upstream server answers for "7\.ok\.test"; .* network n2/,
  );
  assert.equal(fix, "  fix       docker network connect n2 app");
  assert.equal((await explain(instance, world.name, "A", "app")).causes[0]?.code, "other-network");
});

test("the last word is the container; a word that is none is an error that says so", async () => {
  const instance = await shared.with();
  const unknown = await command(instance, "explain", "web", "db", "nobody");
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /No running container or service named "nobody"/);
  assert.match(unknown.stderr, /Without --in, the last word is the container\. .*explain web db nobody --in CONTAINER/);
  const alone = await command(instance, "explain", "web");
  assert.deepEqual([alone.code, /use dns11 explain web --in CONTAINER/.test(alone.stderr)], [2, true], alone.stderr);
});

test("where both words are containers, it is said which one is looked up", async () => {
  const instance = await shared.with();
  for (const asked of ["explain", "lookup"]) {
    const { stderr } = await command(instance, asked, "web", "app");
    assert.equal(stderr, `dns11: "web" is looked up in app; for the other way: dns11 ${asked} app --in web\n`);
    assert.equal((await command(instance, asked, "web", "--in", "app")).stderr, "");
    assert.equal((await command(instance, asked, "7.ok.test", "app")).stderr, "");
  }
});

test("without a running dns11, causes and the reply of Docker's resolver are explained, and lookup works", async () => {
  await shared.stop();
  const nowhere = join(folder, "nowhere");
  const standalone = async (...args: string[]): Promise<CommandResult> =>
    await dns11([...args, "-H", engine.host, "--state-dir", nowhere]);
  const failing = await standalone("explain", "elsewhere", "app");
  assert.equal(failing.code, 0, failing.stderr);
  const [head, why, fix, note] = failing.stdout.split("\n");
  assert.equal(head, "elsewhere (A) in app: NXDOMAIN");
  assert.equal(why, '  why       "elsewhere" is container elsewhere on network n2; app is not on n2');
  assert.equal(fix, "  fix       docker network connect n2 app");
  assert.match(note ?? "", /^ {2}note {6}dns11 is not running; the container's own nameserver replied$/);
  const answered = await standalone("explain", "web", "app");
  assert.ok(answered.stdout.startsWith(`web (A) in app: ${web.address("n1")}  web\n`), answered.stdout);
  const found = await standalone("lookup", "web", "app");
  assert.match(found.stdout, /^web A in "app": NOERROR from 127\.0\.0\.11 over udp in /);
  assert.match(found.stdout, /CONTAINER\n.*  web\n/);
  const nobody = await standalone("lookup", "web", "nobody");
  assert.deepEqual(
    [nobody.code, /No running container or service named "nobody"/.test(nobody.stderr)],
    [2, true],
    nobody.stderr,
  );
});

test("without the capabilities to enter a container, the causes are explained and no query is sent", async () => {
  await shared.stop();
  const args = ["-H", engine.host, "--state-dir", join(folder, "nowhere")];
  const limits = ["--bounding-set", "-all", "--inh-caps", "-all", process.execPath, PROGRAM];
  const result = await run("setpriv", [...limits, "explain", "elsewhere", "app", ...args]);
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stdout, /^elsewhere \(A\) in app: not queried\n {2}why .* app is not on n2\n {2}fix /);
  assert.match(result.stdout, /note +dns11 is not running; no query was sent: Missing capabilities: CAP_SYS_ADMIN/);
});
