// Tests of the GitHub Action beside a real engine, with the variables of a runner set by hand: the summary of a job has the names that failed
// and why, and who asked what, also of containers that are gone; afterwards Docker's resolver answers. Hostile names are text there, and nothing
// a container says is a command to the runner.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { parse } from "yaml";

import type { JobRecord } from "../../src/action/tally.ts";
import { dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { PROGRAM } from "../support/program/built.ts";
import type { CommandResult } from "../support/program/command.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { isAlive } from "../support/program/main-with-keeper.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const FOLDER = ".github/actions/dns11";
const STRANGER = "198.51.100.66";
const HOSTILE = "</code><img>|`::error::`@everyone";

let engine: Engine;
let upstream: Upstream;
let web: Container;
let jobs = 0;
let job: string;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  for (const network of ["front", "back"]) await createNetwork(engine, network);
  web = await runContainer(engine, { name: "web", networks: ["front"] });
  await runContainer(engine, { name: "db", networks: ["back"] });
  await runContainer(engine, { name: "cache", networks: ["front"] });
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

beforeEach(() => {
  job = join(engine.folder, `job-${(jobs += 1)}`);
  mkdirSync(join(job, "temp"), { recursive: true });
  for (const name of ["state", "summary"]) writeFileSync(join(job, name), "");
});

test("the summary has what failed and why, and who asked what, also of containers that are gone", async () => {
  const { code, stdout, stderr } = await half("main");
  assert.equal(code, 0, stdout + stderr);
  assert.equal((await dig(web, "cache")).answer[0]?.ttl, 5);
  assert.equal((await dig(web, "db")).status, "NXDOMAIN");
  const gone = await runContainer(engine, { name: "gone", networks: ["front"] });
  await waitFor("names in a new container", async () =>
    (await dig(gone, "web")).answer[0]?.ttl === 5 ? true : undefined,
  );
  assert.equal((await dig(gone, "db")).status, "NXDOMAIN");
  await dig(gone, `${HOSTILE}.nx.test`);
  await gone.remove();

  const report = await half("post");
  assert.equal(report.code, 0, report.stderr);
  const summary = readFileSync(join(job, "summary"), "utf8");
  assert.match(summary, /^2 names of containers did not resolve\.$/m);
  for (const container of ["web", "gone"]) {
    const [row = ""] =
      new RegExp(`^<tr><td><code>${container}</code></td><td><code>db</code>.*`, "m").exec(summary) ?? [];
    assert.match(row, /<code>NXDOMAIN<\/code>/);
    if (container === "web") assert.match(row, /&quot;db&quot; is container db on network back; web is not on back/);
  }
  assert.match(summary, /docker network connect back web/);
  assert.match(
    summary,
    /<code>web<\/code><\/td><td><code>cache<\/code><\/td><td>\d+<\/td><td>0<\/td><td><code>cache<\/code>/,
  );
  assert.match(
    summary,
    /<code>gone<\/code><\/td><td><code>&lt;\/code&gt;&lt;img&gt;\|`::error::`\\@everyone\.nx\.test<\/code>/,
  );
  assert.doesNotMatch(summary, /<img/);
  const commands = report.stdout.split("\n").filter((line) => line.startsWith("::"));
  assert.equal(commands.length, 2);
  // A cause is found out within half a second; "gone" may have ended before.
  for (const line of commands)
    assert.match(
      line,
      /^::warning title="db" does not resolve in (?:web::"db" is container|gone::("db" is container|it got NXDOMAIN$))/,
    );

  assert.equal((await dig(web, "cache")).answer[0]?.ttl, 600);
  assert.deepEqual(readdirSync(join(job, "temp")), []);
});

test("with an audited policy the summary has what it would refuse, and nothing is refused", async () => {
  const file = writePolicy("mode: audit", "allow: [a1.ok.test]");
  const { code, stdout } = await half("main", { INPUT_POLICY: file });
  assert.equal(code, 0, stdout);
  for (const name of ["a1.ok.test", "a2.ok.test"]) assert.equal((await dig(web, name)).status, "NOERROR");
  await dig(web, "AAAA", "a2.ok.test");
  await dig(web, `${HOSTILE}.ok.test`);
  const report = await half("post", { INPUT_POLICY: file });
  assert.equal(report.code, 0, report.stderr);
  const summary = readFileSync(join(job, "summary"), "utf8");
  assert.match(summary, /^2 names that policies would refuse if they were enforced:$/m);
  assert.match(
    summary,
    /^<tr><td><code>web<\/code><\/td><td><code>ci<\/code><\/td><td><code>a2\.ok\.test<\/code><\/td><td>2<\/td><td><code>allow<\/code>: <code>- &quot;a2\.ok\.test&quot;  # asked by web<\/code><\/td><\/tr>$/m,
  );
  // No rule is made of a name that is none of a host.
  assert.match(
    summary,
    /<td><code>&lt;\/code&gt;&lt;img&gt;\|`::error::`\\@everyone\.ok\.test<\/code><\/td><td>1<\/td><td><code>policy ci: no rule allows it \(policy\.yaml:3:3\)<\/code>/,
  );
  assert.doesNotMatch(summary, /<img|<code>- [^<]*everyone/);
  assert.doesNotMatch(report.stdout, /is refused by a policy/);
});

test("with a policy that is enforced for the job names and connections are refused, and after it nothing holds", async () => {
  const file = writePolicy("mode: audit", "addresses: enforce", "allow: [a1.ok.test]");
  const inputs = { INPUT_POLICY: file, "INPUT_POLICY-MODE": "enforce" };
  const { code, stdout } = await half("main", inputs);
  assert.equal(code, 0, stdout);
  assert.equal((await dig(web, "a1.ok.test")).status, "NOERROR");
  await upstream.forget();
  // It has a way there.
  const route = ["route", "add", `${STRANGER}/32`, "dev", "lo"];
  assert.equal((await engine.enter("ip", route)).code, 0);
  assert.equal((await dig(web, "a2.ok.test")).status, "NXDOMAIN");
  await web.exec("nc", ["-w", "5", STRANGER, "443"]);
  assert.deepEqual(await upstream.queriesFor("a2.ok.test"), []);
  const report = await half("post", inputs);
  assert.equal(report.code, 0, report.stderr);
  const summary = readFileSync(join(job, "summary"), "utf8");
  assert.match(summary, /^2 names refused by policies:$/m);
  assert.match(summary, /no rule allows it \(policy\.yaml:3:3\)/);
  assert.match(summary, /<code>- &quot;a2\.ok\.test&quot; {2}# asked by web<\/code>/);
  assert.match(summary, /<code>- &quot;198\.51\.100\.66:443\/tcp&quot; {2}# connected to by web<\/code>/);
  assert.match(
    report.stdout,
    /^::warning title="a2\.ok\.test" is refused by a policy in web::- "a2\.ok\.test" {2}# asked by web$/m,
  );
  assert.deepEqual(readdirSync(join(job, "temp")), []);
  // Docker's resolver, and no table of the kernel's.
  await waitFor("Docker's resolver", async () =>
    (await dig(web, "+time=1", "a2.ok.test")).status === "NOERROR" ? true : undefined,
  );
  assert.equal((await dig(web, "cache")).answer[0]?.ttl, 600);
  assert.doesNotMatch((await engine.enter("nft", ["list", "tables"])).stdout, /dns11/);
});

test("where another dns11 serves the engine the step fails and says so, and that one goes on", async () => {
  await using other = await startDns11(engine, { stateDir: join(job, "run") });
  await other.waitFor("web", "attached");
  const inputs = { INPUT_POLICY: writePolicy("mode: enforce") };
  const { code, stdout } = await half("main", inputs);
  assert.equal(code, 1, stdout);
  assert.match(stdout, /::error title=dns11::another dns11 serves this engine already \(process \d+\)/);
  assert.equal((await half("post", inputs)).stdout, "::warning title=dns11::there is no record of this job\n");
  assert.equal((await dig(web, "cache")).answer[0]?.ttl, 5);
  assert.ok(isAlive(other.pid));
});

test("queries from before the recorder follows are in the record", async () => {
  await using dns11 = await startDns11(engine, { stateDir: join(job, "run") });
  await dns11.waitFor("web", "attached");
  await dig(web, "cache");
  const recorder = spawn(process.execPath, [join(FOLDER, "record.mjs"), job], {
    env: { ...process.env, DNS11_STATE_DIR: join(job, "run") },
  });
  await waitFor("the recorder", () => (existsSync(join(job, "recorder.pid")) ? true : undefined));
  // It follows by the last of these.
  for (let i = 0; i < 5; i += 1) {
    await dig(web, "web");
    await sleep(300);
  }
  recorder.kill("SIGTERM");
  const { asked } = await waitFor("the record", () => {
    const path = join(job, "record.json");
    return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as JobRecord) : undefined;
  });
  const names = asked.find(({ container }) => container === "web")?.names;
  assert.deepEqual(names, [
    { name: "cache", queries: 1, failed: 0, answer: "cache" },
    { name: "web", queries: 5, failed: 0, answer: "web" },
  ]);
});

test("a dns11 that is killed fails no job: the summary has what was known", async () => {
  assert.equal((await half("main")).code, 0);
  await dig(web, "db");
  const [folder = ""] = readdirSync(join(job, "temp"));
  const pidOf = (name: string): number => Number(readFileSync(join(job, "temp", folder, name), "utf8"));
  const recorder = pidOf("recorder.pid");
  process.kill(pidOf("dns11.pid"), "SIGKILL");
  await waitFor("the recorder to end", () => (isAlive(recorder) ? undefined : true));
  assert.equal((await half("post")).code, 0);
  assert.match(
    readFileSync(join(job, "summary"), "utf8"),
    /<p>The record ends before the job: <code>dns11 stopped<\/code><\/p>/,
  );
  await waitFor("Docker's resolver", async () =>
    (await dig(web, "+time=1", "cache")).answer[0]?.ttl === 600 ? true : undefined,
  );
});

test("a dns11 that does not start fails the step with its log, and the second half does nothing", async () => {
  const program = join(job, "dns11");
  writeFileSync(program, "#!/bin/sh\necho '::error::from a log' >&2\nexit 3\n", { mode: 0o755 });
  const { code, stdout } = await half("main", { INPUT_PROGRAM: program });
  assert.equal(code, 1);
  const [, token] = /^::stop-commands::(\S+)\n::error::from a log\n::\1::$/m.exec(stdout) ?? [];
  assert.ok(token !== undefined && token.length > 20, stdout);
  assert.match(stdout, /^::error title=dns11::dns11 did not start: it ended with 3; its log is above$/m);
  assert.equal((await half("post")).code, 0);
});

test("bad inputs fail the step, and name what is wrong", async () => {
  for (const [env, message] of [
    [{ INPUT_PROGRAM: "dns11" }, /^::error title=dns11::program: "dns11" is no absolute path$/m],
    [{ INPUT_PROGRAM: "/nonexistent" }, /^::error title=dns11::dns11 did not start: spawn \/nonexistent ENOENT/m],
    [{ INPUT_POLICY: "none.yaml" }, /^::error title=dns11::policy: "none\.yaml" cannot be read: ENOENT/m],
    [
      { INPUT_POLICY: writePolicy("mode: block") },
      /policy\.yaml:5:11: policies\.ci\.mode: invalid value "block"[^]*^::error title=dns11::policy: ".*policy\.yaml" is no valid settings file; its mistakes are above$/m,
    ],
    [{ INPUT_ARGS: "--no-such-flag" }, /unknown option '--no-such-flag'/],
    [{ RUNNER_TEMP: "" }, /^::error title=dns11::RUNNER_TEMP is not set: this program is a step of GitHub Actions$/m],
  ] as const) {
    const { code, stdout } = await half("main", env);
    assert.equal(code, 1);
    assert.match(stdout, message);
  }
  assert.equal((await half("post")).code, 0);
});

/** For the network of the tests; its name as a workflow has it. */
function writePolicy(...lines: readonly string[]): string {
  const text = ["version: 1", "policies:", "  ci:", "    for: [network=front]", ...lines.map((each) => `    ${each}`)];
  writeFileSync(join(job, "policy.yaml"), `${text.join("\n")}\n`);
  return "policy.yaml";
}

/** Runs a half of the step in the engine's network, with what a runner sets. What the first half has saved is there for the second. */
async function half(which: "main" | "post", env: NodeJS.ProcessEnv = {}): Promise<CommandResult> {
  const action = parse(readFileSync(join(FOLDER, "action.yml"), "utf8")) as { runs: Record<string, string> };
  const file = join(FOLDER, action.runs[which] ?? "");
  assert.ok(existsSync(file), file);
  const saved = readFileSync(join(job, "state"), "utf8").trim().split("\n");
  const state = saved.filter((line) => line !== "").map((line) => line.split("=", 2) as [string, string]);
  return await engine.enter(process.execPath, [file], {
    env: {
      DOCKER_HOST: engine.host,
      DNS11_METRICS_ADDR: "off",
      DNS11_STATE_DIR: join(job, "run"),
      GITHUB_WORKSPACE: job,
      GITHUB_STATE: join(job, "state"),
      GITHUB_STEP_SUMMARY: join(job, "summary"),
      RUNNER_TEMP: join(job, "temp"),
      INPUT_PROGRAM: PROGRAM,
      ...Object.fromEntries(state.map(([name, value]) => [`STATE_${name}`, value])),
      ...env,
    },
  });
}
