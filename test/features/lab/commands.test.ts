// The commands for tests, on a live engine: fault, record and replay hold a lease for as long as they run.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { GoingCommand } from "../../support/program/going-command.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let app: Container;
let db: Container;
let instance: Dns11;
let place: readonly string[];

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  app = await runContainer(engine, { name: "app", networks: ["n1"] });
  db = await runContainer(engine, { name: "db", networks: ["n1"] });
  instance = await startDns11(engine);
  place = ["-H", engine.host, "--state-dir", instance.stateDir];
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const results = async (name: string, times: number): Promise<string[]> => {
  const all: string[] = [];
  for (let i = 0; i < times; i += 1) all.push((await dig(app, name)).status);
  return all;
};

test("fault holds a rule until Ctrl-C, and says what it has done; others see it, and count no failure", async () => {
  await using fault = new GoingCommand(["fault", "db", "--in", "app", "--servfail", "--every", "3", ...place]);
  await fault.says(
    /in force: servfail for db; in container app \(1 container now, and those that start later\); Ctrl-C ends it\n/,
  );
  assert.deepEqual(await results("db", 4), ["SERVFAIL", "NOERROR", "NOERROR", "SERVFAIL"]);
  const injected =
    /a fault is injected by .*pid \d+ since .*: servfail for "db", one of 3; it has applied\s+to 2 queries of\s+app/;
  const failures = await dns11(["failures", ...place]);
  assert.match(failures.stdout, /^no container's name fails\n/);
  assert.match(failures.stdout.replaceAll("\n", " "), injected);
  const doctor = await dns11(["doctor", ...place]);
  assert.match((doctor.stdout + doctor.stderr).replaceAll(/\s+/g, " "), injected);
  const explain = await dns11(["explain", "db", "app", ...place]);
  assert.match(explain.stdout + explain.stderr, /db/);
  const tail = await dns11(["tail", "app", "--last", "10", ...place]);
  assert.match(tail.stdout, /SERVFAIL.*db[^]*servfail for "db", one of 3 \(lease \d+ of .*pid \d+\)/);
  assert.equal(await fault.end(), 0);
  assert.match(fault.out, /servfail for "db", one of 3: applied to \d of \d queries by app\n$/);
  assert.equal((await dig(app, "db")).status, "NOERROR");
});

test("explain shows the rule that decides, without counting", async () => {
  await using fault = new GoingCommand(["fault", "db", "--in", "app", "--nxdomain", "--count", "1", ...place]);
  await fault.says(/in force/);
  for (let i = 0; i < 2; i += 1) {
    const { stdout } = await dns11(["explain", "db", "app", "-v", ...place]);
    assert.match(stdout.replaceAll(/\s+/g, " "), /rules .*nxdomain for "db", the first 1 \(lease \d+ of .*pid \d+\)/);
  }
  assert.deepEqual(await results("db", 2), ["NXDOMAIN", "NOERROR"]);
});

test("fault can answer, be hermetic, use a preset and end by itself", async () => {
  await using answer = new GoingCommand([
    "fault",
    "api.test",
    "--answer",
    "10.0.0.1,fd00::1",
    "--for",
    "60s",
    ...place,
  ]);
  await answer.says(/for 60 s/);
  assert.deepEqual(dataOf(await dig(app, "api.test")), ["10.0.0.1"]);
  await answer.end();
  await using only = new GoingCommand(["fault", "db", "--only", "--in", "app", ...place]);
  await only.says(/in force/);
  assert.deepEqual([await results("db", 1), await results("x.ok.test", 1)], [["NOERROR"], ["NXDOMAIN"]]);
  await only.end();
  assert.match(only.out, /only db: applied to 1 of 1 query by app\n {2}app {2}x\.ok\.test A\n$/);
  await using preset = new GoingCommand(["fault", "**", "--preset", "five-seconds", "--in", "app", ...place]);
  await preset.says(/in force: drop/);
  assert.ok((await dig(app, "+time=1", "db", "AAAA")).timedOut);
  assert.equal((await dig(app, "db", "A")).status, "NOERROR");
  await preset.end();
  const short = await dns11(["fault", "db", "--drop", "--for", "1ms", ...place]);
  assert.deepEqual([short.code, /drop for "db": nobody asked/.test(short.stdout)], [0, true]);
});

for (const [args, message] of [
  [["fault", "db"], /No fault is given: use one of --nxdomain/],
  [["fault", "db", "--drop", "--servfail"], /Several faults are given/],
  [["fault", "a..b", "--drop"], /Invalid name "a\.\.b"/],
  [["fault", "db", "--preset", "six-seconds"], /Unknown preset "six-seconds": use one of five-seconds/],
  [["fault", "db", "--drop", "--for", "soon"], /Use a time of at most a day, such as 200ms/],
  [["fault", "db", "--answer", "10.0.0.300"], /Invalid address "10\.0\.0\.300"/],
  [["replay", "/nonexistent"], /Cannot read the tape "\/nonexistent"/],
  [["fault", "db", "--servfail", "--jitter", "50ms"], /--jitter has no effect without --delay/],
  [["fault", "db", "--servfail", "--probability", "50%"], /Use a number from 0 to 1/],
] as const) {
  test(`${args.join(" ")} is an error that says what to do`, async () => {
    const { code, stderr } = await dns11([...args, ...place]);
    assert.equal(code, 2);
    assert.match(stderr, message);
  });
}

test("record writes a file, and replay answers from it", async () => {
  const file = join(engine.folder, "tape.yaml");
  await using record = new GoingCommand(["record", file, "--in", "app", ...place]);
  await record.says(/recording container app; Ctrl-C ends it/);
  await dig(app, "seven7.ok.test");
  await dig(app, "db");
  assert.equal(await record.end(), 0);
  assert.match(record.out, /2 queries recorded in /);
  assert.match(readFileSync(file, "utf8"), /name: seven7\.ok\.test/);
  await using replay = new GoingCommand(["replay", file, "--in", "app", "--missing", "servfail", ...place]);
  await replay.says(/replaying/);
  await upstream.forget();
  assert.deepEqual(dataOf(await dig(app, "seven7.ok.test")), ["192.0.2.7"]);
  assert.deepEqual(dataOf(await dig(app, "db")), [db.address("n1")]);
  assert.equal((await dig(app, "eight8.ok.test")).status, "SERVFAIL");
  assert.deepEqual(await upstream.queries(), []);
  await replay.end();
  assert.match(replay.out, /eight8\.ok\.test A/);
});

test("record overwrites nothing, and keeps what it has when its terminal is closed", async () => {
  const [kept, file] = [join(engine.folder, "kept.yaml"), join(engine.folder, "hung-up.yaml")];
  writeFileSync(kept, "kept");
  const refused = await dns11(["record", kept, "--in", "app", ...place]);
  assert.match(refused.stderr, /exists, and dns11 does not overwrite it/);
  assert.equal(readFileSync(kept, "utf8"), "kept");
  const nowhere = await dns11(["record", join(engine.folder, "none", "x.yaml"), "--in", "app", ...place]);
  assert.match(nowhere.stderr, /^dns11: Cannot create ".*none\/x\.yaml".*\n +Choose a path in a directory that exists/);
  await using record = new GoingCommand(["record", file, "--in", "app", ...place]);
  await record.says(/recording/);
  assert.ok(!existsSync(file), "it is there when it is complete");
  await dig(app, "nine9.ok.test");
  assert.equal(await record.end("SIGHUP"), 0);
  assert.match(readFileSync(file, "utf8"), /name: nine9\.ok\.test/);
});
