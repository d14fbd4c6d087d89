// Faults, answers and recordings for test suites, on a live engine: each kind as dig sees it from inside, for those who are meant
// and for nobody else, in force when the call returns, and gone with the process that asked for it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Lab, type Suite, connect } from "dns11/client";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { run } from "../../support/program/command.ts";
import { type Dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let app: Container;
let other: Container;
let db: Container;
let instance: Dns11;
let dns: Suite;

/** What the kernel is to repeat, too; without its feature the process answers. */
const BY_KERNEL = { DNS11_ANSWERS: "kernel" };
const service = (name: string): Record<string, string> => ({
  "com.docker.compose.project": "shop",
  "com.docker.compose.service": name,
});

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  for (const network of ["n1", "n2"]) await createNetwork(engine, network);
  app = await runContainer(engine, { name: "shop-app-1", networks: ["n1"], labels: service("app") });
  other = await runContainer(engine, { name: "other", networks: ["n1"] });
  db = await runContainer(engine, { name: "db", networks: ["n1"] });
  instance = await startDns11(engine, { env: BY_KERNEL });
  dns = await connect({ engine: engine.host, stateDir: instance.stateDir });
  await instance.waitForKernel();
});
after(async () => {
  dns.close();
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const status = async (container: Container, ...args: string[]): Promise<string> => {
  const reply = await dig(container, ...args);
  return reply.timedOut ? "none" : reply.status;
};
const once_ = ["+time=1", "+tries=1"];

test("each kind of fault is what its name says, for local, cached and new names, and ends with its rule", async () => {
  await using lab = await dns.lab({ container: "app" });
  for (const name of ["db", "one.ok.test", "nobody.nx.test"]) {
    const usual = await status(app, name);
    const ofOther = dataOf(await dig(other, name));
    for (const [fault, result] of [
      [{ nxdomain: true }, "NXDOMAIN"],
      [{ servfail: true }, "SERVFAIL"],
      [{ refused: true }, "REFUSED"],
      [{ nodata: true }, "NOERROR"],
      [{ drop: true }, "none"],
    ] as const) {
      const rule = await lab.fault(name, fault);
      assert.equal(rule.containers, 1);
      const reply = await dig(app, ...once_, name);
      assert.equal(reply.timedOut ? "none" : reply.status, result, name);
      assert.deepEqual(dataOf(reply), []);
      assert.deepEqual(dataOf(await dig(other, name)), ofOther, "others notice nothing");
      await rule.remove();
      assert.equal(await status(app, name), usual);
    }
  }
});

test("a fault is of one asker: not of those who wait for the same reply, nor of those who share the cache", async () => {
  await using lab = await dns.lab({ container: "app" });
  await lab.fault("500.slow.test", { servfail: { count: 1 } });
  const [failed, answered] = await Promise.all([dig(app, "500.slow.test"), dig(other, "500.slow.test")]);
  assert.deepEqual([failed.status, answered.status, dataOf(answered).length], ["SERVFAIL", "NOERROR", 1]);
  // Kept for everybody by now: the rule no longer applies, and the reply is the one that the other one got.
  assert.deepEqual(dataOf(await dig(app, "500.slow.test")), dataOf(answered));
  const rule = await lab.fault("500.slow.test", { nxdomain: true });
  assert.equal(await status(app, "500.slow.test"), "NXDOMAIN");
  assert.deepEqual(dataOf(await dig(other, "500.slow.test")), dataOf(answered));
  await rule.remove();
  assert.deepEqual(dataOf(await dig(app, "500.slow.test")), dataOf(answered));
});

test("a truncated reply has the client ask by TCP, where the answer is", async () => {
  await using lab = await dns.lab({ container: "app" });
  await lab.fault("db", { truncate: true });
  const over = await dig(app, "+ignore", "db");
  assert.ok(over.flags.has("tc"));
  assert.deepEqual(dataOf(over), []);
  const reply = await dig(app, "db");
  assert.deepEqual([reply.tcp, dataOf(reply)], [true, [db.address("n1")]]);
});

test("the very next query shows a fault, also of a name that the kernel answers", async () => {
  await using lab = await dns.lab({ project: "shop" });
  for (let i = 0; i < 25; i += 1) {
    // From the second query on by the kernel, unless there is a cookie.
    for (let n = 0; n < 3; n += 1) assert.deepEqual(dataOf(await dig(app, "+nocookie", "db")), [db.address("n1")]);
    const rule = await lab.fault("db", { nxdomain: true });
    assert.equal(await status(app, "+nocookie", "db"), "NXDOMAIN");
    await rule.remove();
    assert.equal(await status(app, "+nocookie", "db"), "NOERROR");
  }
  const { counters } = (await instance.container("shop-app-1")) ?? {};
  assert.ok((counters?.["kernel"] ?? 0) >= 25, JSON.stringify(counters));
});

test("a rule applies to the first so many queries, or one of so many, for each type", async () => {
  await using lab = await dns.lab({ container: "app" });
  const ask = async (times: number, type = "A"): Promise<string> => {
    const results: string[] = [];
    for (let i = 0; i < times; i += 1) results.push((await status(app, "db", type)).slice(0, 1));
    return results.join("");
  };
  const first = await lab.fault("db", { servfail: { count: 2 } });
  assert.deepEqual([await ask(4), await ask(3, "AAAA")], ["SSNN", "SSN"]);
  await first.remove();
  const every = await lab.fault("db", { servfail: true, every: 3 });
  assert.equal(await ask(7), "SNNSNNS");
  await every.remove();
  const types = await lab.fault("db", { servfail: true, types: ["AAAA"] });
  assert.deepEqual([await ask(1), await ask(1, "AAAA")], ["N", "S"]);
  await types.remove();
  const seeded = async (): Promise<string> => {
    const rule = await lab.fault("db", { servfail: true, probability: 0.5, seed: 7 });
    const results = await ask(12);
    await rule.remove();
    return results;
  };
  const results = await seeded();
  assert.match(results, /^(?=.*S)(?=.*N)/);
  assert.equal(await seeded(), results);
});

test("patterns are for one label, or any number; the newest rule that applies decides", async () => {
  await using lab = await dns.lab({ container: "app" });
  await lab.fault("*.ok.test", { nxdomain: true });
  assert.equal(await status(app, "One.OK.test."), "NXDOMAIN");
  assert.equal(await status(app, "a.one.ok.test"), "NOERROR");
  assert.equal(await status(app, "ok.test"), "NXDOMAIN", "the upstream server's own answer");
  await lab.fault("**.test", { servfail: true });
  assert.equal(await status(app, "a.one.ok.test"), "SERVFAIL");
  await lab.fault("one.ok.test", { refused: { count: 1 } });
  assert.equal(await status(app, "one.ok.test"), "REFUSED");
  assert.equal(await status(app, "one.ok.test"), "SERVFAIL");
});

test("a delay holds the answer, of names of all kinds, and nobody else's", async () => {
  await using lab = await dns.lab({ container: "app" });
  await lab.fault("**", { delay: { ms: 400 } });
  for (const [name, data] of [
    ["db", db.address("n1")],
    ["two2.ok.test", "192.0.2.2"],
  ] as const) {
    for (const transport of [[], ["+tcp"]]) {
      const began = performance.now();
      assert.deepEqual(dataOf(await dig(app, ...transport, name)), [data]);
      assert.ok(performance.now() - began >= 400);
    }
  }
  const { queries } = await dns.queries("app", { name: "db" });
  const last = queries.at(-1);
  assert.equal(last?.result, "ruled");
  assert.match(last?.rule ?? "", /^delay 400 ms for "\*\*" \(lease \d+ of .*pid \d+\)$/);
  assert.ok((last?.ms ?? 0) >= 399);
});

test("an answer of the test's own: addresses, records, a container that it follows, and one after the other", async () => {
  await using lab = await dns.lab({ container: "app" });
  await lab.answer("api.stripe.com", { container: "wiremock" });
  assert.deepEqual(dataOf(await dig(app, "api.stripe.com")), []);
  {
    await using wiremock = await runContainer(engine, { name: "wiremock", networks: ["n1"] });
    await waitFor("its address", async () => {
      const [address] = dataOf(await dig(app, "api.stripe.com"));
      return address === wiremock.address("n1") ? true : undefined;
    });
  }
  await waitFor("its end", async () => (dataOf(await dig(app, "api.stripe.com")).length === 0 ? true : undefined));
  await lab.answer("pool.test", { sequence: [["10.0.0.1"], "NXDOMAIN", ["10.0.0.2", "fd00::2"]], ttl: 1 });
  const answers: unknown[] = [];
  for (let i = 0; i < 4; i += 1) {
    const reply = await dig(app, "pool.test");
    answers.push(dataOf(reply)[0] ?? reply.status);
  }
  assert.deepEqual(answers, ["10.0.0.1", "NXDOMAIN", "10.0.0.2", "10.0.0.2"]);
  await lab.answer("mail.test", { mx: "10 mx.mail.test", txt: "v=1", ttl: 7 });
  const mail = await dig(app, "mail.test", "MX");
  assert.deepEqual([mail.answer[0]?.ttl, dataOf(mail)], [7, ["10 mx.mail.test."]]);
  assert.equal((await dig(app, "mail.test", "A")).status, "NOERROR");
  await lab.split("half.test", { app: "10.0.0.3", other: "10.0.0.4" });
  assert.deepEqual(dataOf(await dig(app, "half.test")), ["10.0.0.3"]);
});

test("a split gives each container its own answer", async () => {
  await using lab = await dns.lab();
  await lab.split("half.test", { app: "10.0.0.3", other: ["10.0.0.4"] });
  assert.deepEqual(dataOf(await dig(app, "half.test")), ["10.0.0.3"]);
  assert.deepEqual(dataOf(await dig(other, "half.test")), ["10.0.0.4"]);
});

test("a hermetic container resolves only what it may, and the rest is listed", async () => {
  await using lab = await dns.lab({ container: "app" });
  await lab.only(["db", "**.ok.test"]);
  assert.deepEqual(dataOf(await dig(app, "db")), [db.address("n1")]);
  assert.deepEqual(dataOf(await dig(app, "three3.ok.test")), ["192.0.2.3"]);
  await upstream.forget();
  assert.equal(await status(app, "telemetry.nx.test"), "NXDOMAIN");
  assert.equal(await status(app, "-x", db.address("n1")), "NXDOMAIN");
  assert.deepEqual(await upstream.queries(), [], "nothing is sent");
  const { rules } = await lab.report();
  assert.deepEqual(
    rules[0]?.refused?.map(({ container, name, type, count }) => [container, name, type, count]),
    [
      ["shop-app-1", "telemetry.nx.test", "A", 1],
      ["shop-app-1", `${db.address("n1").split(".").toReversed().join(".")}.in-addr.arpa`, "PTR", 1],
    ],
  );
  assert.equal(await status(other, "telemetry.ok.test"), "NOERROR");
});

test("a rule for a label, a network or a project covers containers that start or join later", async () => {
  await using lab = await dns.lab({ label: "org.example.session=7" });
  const rule = await lab.fault("db", { servfail: true });
  assert.equal(rule.containers, 0);
  await using later = await runContainer(engine, {
    name: "later",
    networks: ["n1"],
    labels: { "org.example.session": "7" },
  });
  await instance.waitFor("later", "attached");
  assert.equal(await status(later, "db"), "SERVFAIL");
  await using ofNetwork = await dns.lab({ network: "n2" });
  await ofNetwork.fault("other", { refused: true });
  assert.equal(await status(later, "other"), "NOERROR");
  await later.connect("n2");
  await waitFor("the rule of the network", async () =>
    (await status(later, "other")) === "REFUSED" ? true : undefined,
  );
  await later.disconnect("n2");
  await waitFor("its end", async () => ((await status(later, "other")) === "NOERROR" ? true : undefined));
  // Who uses the namespace of another container asks from there.
  await using inside = await dns.lab({ container: "sidecar" });
  await inside.fault("db", { refused: true });
  await using _ = await runContainer(engine, { name: "sidecar", args: ["--network=container:other"] });
  await waitFor("the rule of the sidecar", async () => ((await status(other, "db")) === "REFUSED" ? true : undefined));
});

test("what was asked is found, or an error says what was asked instead", async () => {
  await using lab = await dns.lab({ project: "shop" });
  const waiting = lab.asked("db", { by: "app", type: "AAAA", within: 60_000 });
  await dig(app, "db", "AAAA");
  assert.equal((await waiting).type, "AAAA");
  await dig(app, "elsewhere.ok.test");
  const error = await lab.asked("cache", { by: "app", within: 100 }).catch((thrown: unknown) => thrown as Error);
  assert.ok(error instanceof Error);
  assert.equal((error as Error & { code?: string }).code, "NOT_ASKED");
  assert.match(
    error.message,
    /^"cache" was not queried by app within 100 ms; queried was: db AAAA, elsewhere\.ok\.test A$/,
  );
});

test("rules that did nothing are named in the report", async () => {
  await using lab = await dns.lab({ container: "app" });
  await lab.fault("cache", { nxdomain: true });
  await lab.fault("db", { nxdomain: { types: ["SRV"] } });
  await dig(app, "db");
  assert.deepEqual((await lab.report()).unused, [
    'nxdomain for "cache": "cache" was never queried; a program may have kept what it was answered before',
    'nxdomain for "db", types SRV: "db" was never queried; a program may have kept what it was answered before',
  ]);
});

test("a tape has what was asked and answered, and replaying it needs no server", async () => {
  const path = join(engine.folder, "dns.yaml");
  {
    await using lab = await dns.lab({ project: "shop" });
    const tape = await lab.record();
    for (const args of [
      ["db"],
      ["five5.ok.test"],
      ["five5.ok.test"],
      ["six.cname.test"],
      ["one.ok.test", "MX"],
      ["nobody.nx.test"],
    ])
      await dig(app, ...args);
    await dig(other, "unrecorded.ok.test");
    await tape.save(path);
    assert.equal(tape.missed, 0);
  }
  const text = readFileSync(path, "utf8");
  assert.match(
    text,
    /- by: app\n {4}name: five5\.ok\.test\n {4}type: A\n {4}answers:\n {6}- \{ .*a: \[ 192\.0\.2\.5 \].*times: 2.*\}/,
  );
  assert.match(text, /name: db\n {4}type: A\n {4}live: true\n/);
  assert.match(text, /cnames: \[ six\.ok\.test \]/);
  // A person edits it.
  writeFileSync(path, text.replace("192.0.2.5", "10.9.8.7"));
  await using lab = await dns.lab({ project: "shop" });
  await lab.replay(path);
  await upstream.forget();
  assert.deepEqual(dataOf(await dig(app, "five5.ok.test")), ["10.9.8.7"]);
  assert.deepEqual(dataOf(await dig(app, "six.cname.test")), ["six.ok.test.", "192.0.2.1"]);
  assert.match(dataOf(await dig(app, "one.ok.test", "MX"))[0] ?? "", /^10 /);
  assert.deepEqual(dataOf(await dig(app, "db")), [db.address("n1")]);
  assert.equal(await status(app, "nobody.nx.test"), "NXDOMAIN");
  assert.equal(await status(app, "five5.ok.test", "AAAA"), "NOERROR", "the name is on the tape, the type is not");
  assert.equal(await status(app, "new.ok.test"), "NXDOMAIN", "not on the tape");
  assert.deepEqual(await upstream.queries(), []);
  const error = await lab.replay({ tape: 1, queries: [{}] } as never).catch((thrown: unknown) => thrown as Error);
  assert.ok(error instanceof Error);
});

test("a test that is killed leaves nothing behind, and neither does a dns11 that is replaced", async () => {
  const script = `import { connect } from "dns11/client";
    const dns = await connect(${JSON.stringify({ engine: engine.host, stateDir: instance.stateDir })});
    const lab = await dns.lab({ container: "app" });
    await lab.fault("db", { nxdomain: true });
    await lab.only([]);
    console.log("in force");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  assert.equal(await status(app, "db"), "NXDOMAIN");
  child.kill("SIGKILL");
  await waitFor("its rules to go", async () => ((await status(app, "db")) === "NOERROR" ? true : undefined));

  const lab: Lab = await dns.lab({ container: "app" });
  await lab.fault("db", { nxdomain: true });
  instance = await replaceDns11(engine, instance, { env: BY_KERNEL });
  await lab.ended;
  assert.equal(await status(app, "db"), "NOERROR");
  await assert.rejects(
    lab.fault("db", { nxdomain: true }),
    /dns11 was stopped or replaced, so the rules of the lease are gone/,
  );
  await instance.waitForKernel();
});

test("a lease is lines over HTTP: any language can hold one, and a mistake says what is wrong", async () => {
  const [folder = ""] = (await run("ls", [instance.stateDir])).stdout.trim().split("\n");
  const socket = join(instance.stateDir, folder, "control.sock");
  const lines = [
    '{"rule": {"name": "db", "action": "servfail", "in": {"container": "app"}}}',
    "nonsense",
    '{"rule": {"name": "db", "action": "servfial"}}',
    '{"rule": {"name": "a..b", "action": "drop"}}',
    '{"rule": {"name": "db", "action": "answer", "answer": "10.0.0.256"}}',
    '{"rule": {"name": "db", "action": "drop", "in": {"kontainer": "app"}}}',
    '{"remove": 7}',
    '{"report": true}',
  ];
  const { stdout, code } = await run("sh", [
    "-c",
    `printf '%s\\n' "$@" | curl --silent --no-buffer --unix-socket ${socket} -X POST -T - http://dns11/v1/lease`,
    "sh",
    ...lines,
  ]);
  assert.equal(code, 0);
  const replies = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { line: number; id?: number; error?: string; report?: unknown });
  assert.deepEqual(
    replies.map(({ line }) => line),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
  assert.equal(replies[0]?.id, 1);
  const errors = replies.slice(1, 7).map(({ error = "" }) => error);
  for (const [index, pattern] of [
    /not JSON/,
    /Unknown action "servfial": did you mean servfail\?/,
    /Invalid name "a\.\.b": use a name such as/,
    /Invalid address "10\.0\.0\.256": use an IP address/,
    /Unknown field "kontainer" of in: did you mean container\?/,
    /The lease has no rule 7/,
  ].entries())
    assert.match(errors[index] ?? "", pattern);
  assert.equal(await status(app, "db"), "NOERROR", "its end took the rule back");
});
