// Tests of the GitHub Action on a runner: a Debian system whose user has sudo without a password and is in the group docker. It installs the
// release of its own version, serves and reports, and leaves no process and no file of it, also of a step that was cancelled.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";

import { dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type CommandResult, check, run } from "../support/program/command.ts";
import { textOf } from "../support/rig/text-of.ts";
import { waitFor } from "../support/rig/wait.ts";
import { FileServer } from "../support/servers/file-server.ts";

const USER = "runner";
/** Has sudo, but not the group docker. */
const STRANGER = "stranger";
const PATH = "/usr/local/bin:/usr/bin:/bin";
const NEVER_READY = "sleep 1000000";

let engine: Engine;
let web: Container;
let server: FileServer;
let node: string;
let checkout: string;
let jobs = 0;
let job: string;

before(async () => {
  engine = await startEngine({ suite: "trixie" });
  await createNetwork(engine, "shop");
  web = await runContainer(engine, { name: "web", networks: ["shop"] });
  await runContainer(engine, { name: "db", networks: ["shop"] });
  chmodSync(engine.folder, 0o755);
  for (const user of [USER, STRANGER]) {
    await host("useradd", "--create-home", user);
    await host("sh", "-c", `echo '${user} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/${user}`);
  }
  await host("usermod", "--append", "--groups", "docker", USER);
  checkout = join(engine.folder, "checkout");
  for (const path of [".github/actions/dns11", "scripts/install.sh", "package.json"]) {
    cpSync(path, join(checkout, path), { recursive: true });
  }
  // The runner's user has cloned it, also where whoever runs the tests keeps files to himself.
  await host("chown", "-R", USER, checkout);
  node = join(engine.folder, "node");
  cpSync(process.execPath, node, { dereference: true });
  const release = join(engine.folder, "release");
  await check("scripts/deb.sh", [release], { env: { DEB_COMPRESS: "none" } });
  await check("sh", ["-c", 'cd "$1" && sha256sum * >SHA256SUMS', "sh", release]);
  server = await FileServer.start(engine.netnsPath, release);
});
after(async () => {
  server?.[Symbol.dispose]();
  await engine[Symbol.asyncDispose]();
});

beforeEach(async () => {
  job = join(engine.folder, `job-${(jobs += 1)}`);
  mkdirSync(join(job, "temp"), { recursive: true });
  for (const name of ["state", "summary"]) writeFileSync(join(job, name), "");
  await host("chown", "-R", USER, job);
});

test("a user with sudo installs, serves and reports, and nothing of root is left", async () => {
  const file = join(job, "policy.yaml");
  writeFileSync(
    file,
    "version: 1\npolicies:\n  ci:\n    for: [network=shop]\n    addresses: enforce\n    mode: audit\n    allow: []\n",
  );
  await host("chown", USER, file);
  const inputs = { INPUT_URL: `${server.url}/whole`, INPUT_POLICY: file, "INPUT_POLICY-MODE": "enforce" };
  const started = await half("start.mjs", inputs);
  assert.equal(started.code, 0, started.stdout + started.stderr);
  assert.match(started.stdout, /dns11 \S+ is installed\n/);
  assert.equal((await dig(web, "evil.test")).status, "NXDOMAIN");
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 5);
  assert.match(processes().join("\n"), /sudo/);

  const reported = await half("report.mjs", inputs);
  assert.equal(reported.code, 0, reported.stdout + reported.stderr);
  assert.match(readFileSync(join(job, "summary"), "utf8"), /<code>- &quot;evil\.test&quot; {2}# asked by web<\/code>/);
  assert.match(readFileSync(join(job, "summary"), "utf8"), /<code>web<\/code><\/td><td><code>db<\/code>/);
  await waitFor("Docker's resolver", async () =>
    (await dig(web, "+time=1", "db")).answer[0]?.ttl === 600 ? true : undefined,
  );
  await leavesNothing();
});

test("a step that is cancelled while dns11 starts is ended by the second half", async () => {
  const program = join(engine.folder, "never-ready");
  writeFileSync(program, `#!/bin/sh\nexec ${NEVER_READY}\n`, { mode: 0o755 });
  const [command = "", ...args] = inHost(...asUser(USER, "start.mjs", { INPUT_PROGRAM: program }));
  const step = spawn(command, args, { stdio: "ignore" });
  const ended = once(step, "close");
  await waitFor("the program", () => (processes().some((each) => each.startsWith(NEVER_READY)) ? true : undefined));
  await waitFor("its process id", () => (existsSync(join(stepFolder(), "dns11.pid")) ? true : undefined));
  step.kill("SIGKILL");
  await ended;
  const { code, stdout } = await half("report.mjs");
  assert.equal(code, 0);
  assert.match(stdout, /^::warning title=dns11::there is no record of this job$/m);
  await leavesNothing();
});

test("a user who may not use Docker is told so before anything is started", async () => {
  await host("chown", "-R", STRANGER, job);
  const { code, stdout } = await half("start.mjs", { INPUT_PROGRAM: "/bin/false" }, STRANGER);
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^::error title=dns11::Permission denied .*: the user of the runner must be root or in the group docker$/m,
  );
  assert.equal((await half("report.mjs", {}, STRANGER)).code, 0);
  await leavesNothing();
});

test("a sudo that wants a password fails the step with what sudo says", async () => {
  await host("rm", `/etc/sudoers.d/${USER}`);
  const { code, stdout } = await half("start.mjs", { INPUT_PROGRAM: "/bin/false" });
  assert.equal(code, 1);
  assert.match(stdout, /^sudo: a password is required$/m);
  assert.match(stdout, /^::error title=dns11::dns11 did not start: it ended with 1; its log is above$/m);
  await half("report.mjs");
  await leavesNothing();
});

/** Neither in the folder of the runner nor as a process; what belongs to the runner's user alone was never of root. */
async function leavesNothing(): Promise<void> {
  assert.deepEqual(readdirSync(join(job, "temp")), []);
  assert.equal(await host("find", job, "-user", "root"), "");
  // The keeper sees first that the main process has ended.
  await waitFor("the processes to end", () => (processes().length === 0 ? true : undefined));
}

/** The command lines of the action's processes in the engine's host, with those of sudo and of what it runs. */
function processes(): string[] {
  const place = namespaceOf(String(engine.hostPid));
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && namespaceOf(pid) === place)
    .map((pid) => textOf(`/proc/${pid}/cmdline`).replaceAll("\0", " "))
    .filter((line) => line.includes("sudo") || line.includes("dns11") || line.startsWith(NEVER_READY));
}

/** Undefined for a process that is gone. */
function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`);
  } catch {
    return undefined;
  }
}

function stepFolder(): string {
  const [name = ""] = readdirSync(join(job, "temp"));
  return join(job, "temp", name);
}

/** Runs a half of the step as a user of the engine's host. What the first half has saved is there for the second. */
async function half(file: string, env: NodeJS.ProcessEnv = {}, user = USER): Promise<CommandResult> {
  const [command = "", ...args] = inHost(...asUser(user, file, env));
  return await run(command, args);
}

function asUser(user: string, file: string, env: NodeJS.ProcessEnv): string[] {
  const [, saved] = /^folder=(.*)$/m.exec(readFileSync(join(job, "state"), "utf8")) ?? [];
  const variables = {
    PATH,
    DOCKER_HOST: engine.host,
    GITHUB_STATE: join(job, "state"),
    GITHUB_STEP_SUMMARY: join(job, "summary"),
    RUNNER_TEMP: join(job, "temp"),
    ...(saved === undefined ? {} : { STATE_folder: saved }),
    ...env,
  };
  const words = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const rights = ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--init-groups"];
  return [...rights, "env", "-i", ...words, node, join(checkout, ".github/actions/dns11", file)];
}

function inHost(...words: readonly string[]): string[] {
  return ["nsenter", "--target", String(engine.hostPid), "--mount", "--net", "--", ...words];
}

async function host(...words: readonly string[]): Promise<string> {
  const [command = "", ...args] = inHost(...words);
  return await check(command, args, { env: { LC_ALL: "C" } });
}
