// The commands for tests, on a live engine: fault, record, replay and wait hold a lease for as long as they run, and `run --with`
// serves for as long as another command does.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { PROGRAM } from "../support/program/built.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { inTime, waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let app: Container;
let db: Container;
let instance: Dns11;
let place: readonly string[];

before(async () => {
  engine = await startEngine();
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

/** A command that goes on until it is told to end. */
class Running implements AsyncDisposable {
  readonly child: ChildProcess;
  out = "";
  readonly #ended: Promise<number>;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.child = spawn(process.execPath, [PROGRAM, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.out += chunk.toString()));
    this.#ended = new Promise((resolve) => this.child.on("close", (code) => resolve(code ?? -1)));
  }

  async says(pattern: RegExp): Promise<void> {
    await waitFor(`${pattern}`, () => {
      if (this.child.exitCode !== null) throw new Error(`it has ended: ${this.out}`);
      return pattern.test(this.out) ? true : undefined;
    });
  }

  async end(signal: NodeJS.Signals = "SIGINT"): Promise<number> {
    this.child.kill(signal);
    return await this.ended;
  }

  get ended(): Promise<number> {
    return inTime(this.#ended, "the command to end");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

const results = async (name: string, times: number): Promise<string[]> => {
  const all: string[] = [];
  for (let i = 0; i < times; i += 1) all.push((await dig(app, name)).status);
  return all;
};

test("fault holds a rule until Ctrl-C, and says what it has done; others see it, and count no failure", async () => {
  await using fault = new Running(["fault", "db", "--in", "app", "--servfail", "--every", "3", ...place]);
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
  await using fault = new Running(["fault", "db", "--in", "app", "--nxdomain", "--count", "1", ...place]);
  await fault.says(/in force/);
  for (let i = 0; i < 2; i += 1) {
    const { stdout } = await dns11(["explain", "db", "app", "-v", ...place]);
    assert.match(stdout.replaceAll(/\s+/g, " "), /rules .*nxdomain for "db", the first 1 \(lease \d+ of .*pid \d+\)/);
  }
  assert.deepEqual(await results("db", 2), ["NXDOMAIN", "NOERROR"]);
});

test("fault can answer, be hermetic, use a preset and end by itself", async () => {
  await using answer = new Running(["fault", "api.test", "--answer", "10.0.0.1,fd00::1", "--for", "60s", ...place]);
  await answer.says(/for 60 s/);
  assert.deepEqual(dataOf(await dig(app, "api.test")), ["10.0.0.1"]);
  await answer.end();
  await using only = new Running(["fault", "db", "--only", "--in", "app", ...place]);
  await only.says(/in force/);
  assert.deepEqual([await results("db", 1), await results("x.ok.test", 1)], [["NOERROR"], ["NXDOMAIN"]]);
  await only.end();
  assert.match(only.out, /only db: applied to 1 of 1 query by app\n {2}app {2}x\.ok\.test A\n$/);
  await using preset = new Running(["fault", "**", "--preset", "five-seconds", "--in", "app", ...place]);
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
  [["wait", "db"], /required option '--in <container>' not specified/],
  [["run", "--with"], /--with needs a command/],
  [["fault", "db", "--servfail", "--jitter", "50ms"], /--jitter has no effect without --delay/],
  [["fault", "db", "--servfail", "--probability", "50%"], /Use a number from 0 to 1/],
  [["run", "npm", "test"], /Unexpected argument "npm"/],
] as const) {
  test(`${args.join(" ")} is an error that says what to do`, async () => {
    const { code, stderr } = await dns11([...args, ...place]);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  });
}

test("record writes a file, and replay answers from it", async () => {
  const file = join(engine.folder, "tape.yaml");
  await using record = new Running(["record", file, "--in", "app", ...place]);
  await record.says(/recording container app; Ctrl-C ends it/);
  await dig(app, "seven7.ok.test");
  await dig(app, "db");
  assert.equal(await record.end(), 0);
  assert.match(record.out, /2 queries recorded in /);
  assert.match(readFileSync(file, "utf8"), /name: seven7\.ok\.test/);
  await using replay = new Running(["replay", file, "--in", "app", "--missing", "servfail", ...place]);
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
  await using record = new Running(["record", file, "--in", "app", ...place]);
  await record.says(/recording/);
  assert.ok(!existsSync(file), "it is there when it is complete");
  await dig(app, "nine9.ok.test");
  assert.equal(await record.end("SIGHUP"), 0);
  assert.match(readFileSync(file, "utf8"), /name: nine9\.ok\.test/);
});

test("wait ends when a name resolves, or with the reason why not", async () => {
  const waiting = dns11(["wait", "late", "--in", "app", "--timeout", "60s", ...place]);
  await using late = await runContainer(engine, { name: "late", networks: ["n1"] });
  const { code, stdout } = await waiting;
  assert.deepEqual([code, stdout], [0, `${late.address("n1")}\n`]);
  const failed = await dns11(["wait", "nobody", "--in", "app", "--timeout", "300ms", ...place]);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /"nobody" \(A\) did not resolve in "app" within 300 ms/);
});

test("run --with serves while a command runs, exits with its code, and says which names failed", async () => {
  await instance.stop();
  const folder = join(engine.folder, "with");
  const args = ["run", "-H", engine.host, "--state-dir", folder, "--with", "--"];
  const env = { DNS11_METRICS_ADDR: "off" };
  const ask = (name: string): string =>
    `exec nsenter --net=${app.netnsPath} dig -r @127.0.0.11 +tries=1 +time=30 ${name} +noall +answer +comments`;
  const good = await dns11([...args, "sh", "-c", ask("db")], { env });
  assert.equal(good.code, 0, good.stderr);
  assert.match(good.stdout, new RegExp(`^db\\.\\s+5\\s+IN\\s+A\\s+${db.address("n1")}$`, "m"));
  const bad = await dns11([...args, "sh", "-c", `${ask("dbb").replace("exec ", "")}; exit 7`], { env });
  assert.equal(bad.code, 7);
  assert.match(bad.stderr, /dns11: names that failed while the command ran:\n[^]*app\s+dbb/);
  assert.equal((await dns11([...args, "/nonexistent"], { env })).code, 127);
  const status = await dns11([...args, "sh", "-c", "grep Cap /proc/self/status; echo threads $UV_THREADPOOL_SIZE"], {
    env: { ...env, UV_THREADPOOL_SIZE: "5" },
  });
  const own = readFileSync("/proc/self/status", "utf8").match(/^Cap.*$/gm) ?? [];
  assert.equal(status.stdout, [...own, "threads 5", ""].join("\n"), "the command has what it would have without dns11");
  const wrong = await dns11([...args.slice(0, -2), "--ttl", "never", ...args.slice(-2), "true"], { env });
  assert.equal(wrong.code, 2, wrong.stderr);
  assert.equal((await dig(app, "db")).answer[0]?.ttl, 600, "Docker's resolver answers afterwards");
  assert.deepEqual(controlSockets(folder), []);
});

// Of the instances that run with this state directory.
function controlSockets(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith("control.sock"));
}

test("run --with that is killed serves no longer, and a signal is the command's", async () => {
  const folder = join(engine.folder, "killed");
  const args = [
    "run",
    "-H",
    engine.host,
    "--state-dir",
    folder,
    "--with",
    "--",
    "sh",
    "-c",
    "echo begun $$; exec sleep 300",
  ];
  await using killed = new Running(args, { DNS11_METRICS_ADDR: "off" });
  await killed.says(/begun/);
  const command = Number(/begun (\d+)/.exec(killed.out)?.[1]);
  try {
    assert.equal(controlSockets(folder).length, 1);
    killed.child.kill("SIGKILL");
    await waitFor("the end of the server", () => (controlSockets(folder).length === 0 ? true : undefined));
    assert.equal((await dig(app, "db")).answer[0]?.ttl, 600, "Docker's resolver answers afterwards");
  } finally {
    // It goes on, as it does where a shell is killed.
    process.kill(command);
  }
  await using ended = new Running(args, { DNS11_METRICS_ADDR: "off" });
  await ended.says(/begun/);
  assert.equal(await ended.end("SIGTERM"), 128 + constants.signals.SIGTERM);
  assert.deepEqual(controlSockets(folder), []);
});

test("Ctrl-C at a terminal reaches the command of run --with once", async () => {
  const counter = join(engine.folder, "counter.mjs");
  writeFileSync(
    counter,
    'let times = 0; process.on("SIGINT", () => times++); console.log("begun"); setTimeout(() => console.log("SIGINT: " + times), 1000);',
  );
  const words = ["run", "-H", engine.host, "--state-dir", join(engine.folder, "tty"), "--with", "--"];
  const line = [process.execPath, PROGRAM, ...words, process.execPath, counter].map((word) => `'${word}'`).join(" ");
  const terminal = spawn("script", ["-qfec", line, "/dev/null"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, DNS11_METRICS_ADDR: "off" },
  });
  let out = "";
  terminal.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
    if (chunk.toString().includes("begun")) terminal.stdin.write("\u0003");
  });
  await inTime(once(terminal, "exit"), "the end of the command");
  assert.match(out, /SIGINT: 1\r?\n/, out);
});
