// For continuous integration, on a live engine: `wait` until a name resolves, and `run --with`, which serves for as long as another
// command runs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { PROGRAM } from "../support/program/built.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { GoingCommand } from "../support/program/going-command.ts";
import { inTime, waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

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

for (const [args, message] of [
  [["wait", "db"], /required option '--in <container>' not specified/],
  [["run", "--with"], /--with needs a command/],
  [["run", "npm", "test"], /Unexpected argument "npm"/],
] as const) {
  test(`${args.join(" ")} is an error that says what to do`, async () => {
    const { code, stderr } = await dns11([...args, ...place]);
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  });
}

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
  await using killed = new GoingCommand(args, { DNS11_METRICS_ADDR: "off" });
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
  await using ended = new GoingCommand(args, { DNS11_METRICS_ADDR: "off" });
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
