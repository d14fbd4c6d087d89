/**
 * Bad input: each gets a message that names what was wrong and what to do, and an exit code that docs/cli.md documents.
 */
import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { check, run } from "../support/program/command.ts";
import { Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { waitFor } from "../support/rig/wait.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const NO_ANSWERS = 65_534;
let engine: Engine;
let folder: string;

before(async () => {
  engine = await startEngine();
  folder = mkdtempSync(join(tmpdir(), "d11-bad-"));
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await engine[Symbol.asyncDispose]();
});

async function refused(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number; stderr: string }> {
  const { code, stderr } = await dns11(args, { env: { DOCKER_HOST: "", ...env } });
  return { code, stderr };
}

test("unknown commands, flags and values are usage errors that say what would do", async () => {
  for (const [args, message] of [
    [["serve"], /unknown command 'serve'/],
    [["kind", "statsu"], /unknown command 'statsu'/],
    [["help", "serve"], /unknown command 'serve'/],
    [["help", "cache", "serve"], /unknown command 'serve'/],
    [["run", "--fast"], /unknown option '--fast'/],
    [["run", "--only", "name=web"], /'name=web' is invalid\. Use label=KEY, label=KEY=VALUE or network=NAME/],
    [["run", "--ttl", "soon"], /'soon' is invalid\. Use whole seconds from 0 to 7d, such as 30s or 5m/],
    [["run", "--log-level", "loud"], /'loud' is invalid\. Use one of debug, info, warn, error, silent/],
    [["run", "--dns", "10.0.0"], /'10\.0\.0' is invalid\. .*"host" or an IP address/],
    [["run", "--dns-search", "corp"], /search lists are applied by the resolver library in the container/],
    [["run", "--strict", "--cache"], /no effect without the switch failover/],
    [["run", "--config", "/nonexistent"], /\/nonexistent/],
    [["run", "--engine-pid", "-1"], /Use a process ID/],
    [["run", "-H", "npipe:////./pipe/docker"], /not a unix socket[\s\S]*-H unix:/],
  ] as const) {
    const { code, stderr } = await refused(args);
    assert.equal(code, 2, `${args.join(" ")}: ${stderr}`);
    assert.match(stderr, message);
  }
});

test("no socket at all is told with the path, and ends with 1", async () => {
  const { code, stderr } = await refused(["run", "-H", `unix://${folder}/nothing.sock`]);
  assert.equal(code, 1);
  assert.match(stderr, /No engine socket at ".*nothing\.sock"[\s\S]*Check that Docker is installed and running/);
});

test("an engine that is not there yet is waited for, and served when it comes", async () => {
  await engine.kill("SIGKILL");
  await using early = new Dns11(engine.host);
  await waitFor("dns11 to say that it waits", () => (early.log.includes("waiting for the engine") ? true : undefined));
  assert.match(early.log, /Connection refused at the engine socket/);
  await engine.startDaemon();
  await early.waitUntilReady();
  assert.equal(await early.stop(), 0);
});

test("engines whose namespaces are elsewhere are refused: tcp, ssh", async () => {
  for (const host of ["tcp://127.0.0.1:2375", "ssh://root@box", "127.0.0.1:2375"]) {
    const { code, stderr } = await refused(["run", "-H", host]);
    assert.equal(code, 3, stderr);
    assert.match(stderr, /may be on another machine[\s\S]*run it on that machine/);
  }
  assert.equal((await refused(["run"], { DOCKER_HOST: "tcp://127.0.0.1:2375" })).code, 3);
});

test("an engine in a PID namespace that is not visible from here is refused", async () => {
  const words = ["--pid", "--fork", "--mount-proc", process.execPath, join(ROOT, "dist/cmd/dns11.js")];
  const rest = [...words, "run", "-H", engine.host, "--state-dir", folder];
  const { code, stderr } = await run("unshare", rest);
  assert.equal(code, 3, stderr);
  assert.match(stderr, /not visible from here: it runs in another PID namespace[\s\S]*--pid host/);
});

test("without root, or without a capability, the missing ones are named", async () => {
  const program = ["--", process.execPath, join(ROOT, "dist/cmd/dns11.js"), "run", "-H", engine.host];
  const drop = async (...args: string[]): Promise<{ code: number; stderr: string }> =>
    await run("setpriv", [...args, ...program, "--state-dir", folder]);
  const withoutOne = await drop("--bounding-set", "-net_admin");
  assert.equal(withoutOne.code, 3, withoutOne.stderr);
  assert.match(withoutOne.stderr, /Missing capabilities: CAP_NET_ADMIN \(to install rules there\)[\s\S]*--cap-add/);
  assert.doesNotMatch(withoutOne.stderr, /CAP_SYS_ADMIN/);
  const without = await drop("--bounding-set", "-all", "--inh-caps", "-all");
  assert.match(without.stderr, /CAP_SYS_ADMIN .*CAP_NET_ADMIN .*CAP_SYS_PTRACE/);
});

test("permission denied at the socket says so", async () => {
  // Capabilities without the right to pass by file modes: what a service with a narrow bounding set has.
  await check("chmod", ["0000", engine.socketPath]);
  await check("chown", ["65534:65534", engine.socketPath]);
  const program = [process.execPath, join(ROOT, "dist/cmd/dns11.js"), "run", "-H", engine.host, "--state-dir", folder];
  const { code, stderr } = await run("setpriv", ["--bounding-set", "-dac_override,-dac_read_search", "--", ...program]);
  await check("chown", ["0:0", engine.socketPath]);
  await check("chmod", ["0660", engine.socketPath]);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /Permission denied at the engine socket "[\s\S]*as root/);
});

test("a state folder that cannot be used is named", async () => {
  writeFileSync(join(folder, "file"), "");
  const file = await refused(["run", "-H", engine.host, "--state-dir", join(folder, "file")]);
  assert.equal(file.code, 1, file.stderr);
  assert.match(file.stderr, /The state folder ".*file.*" cannot be used: .*ENOTDIR[\s\S]*--state-dir/);
  const long = await refused(["run", "-H", engine.host, "--state-dir", join(folder, "x".repeat(120))]);
  assert.match(long.stderr, /too long for a socket path/);
  // Root with the capabilities that dns11 leaves itself may not write to everybody's folders.
  const foreign = mkdtempSync(join(folder, "f"));
  chownSync(foreign, NO_ANSWERS, NO_ANSWERS);
  const denied = await refused(["run", "-H", engine.host, "--state-dir", join(foreign, "s")]);
  assert.equal(denied.code, 1, denied.stderr);
  assert.match(denied.stderr, /cannot be used: .*EACCES[\s\S]*owned by root.*--capabilities keep/);
});

test("nobody but root can hold the lock that an instance needs", async () => {
  const stateDir = mkdtempSync(join(folder, "locked-"));
  chmodSync(stateDir, 0o755);
  chmodSync(folder, 0o755);
  await using instance = await startDns11(engine, { stateDir });
  assert.equal(await instance.stop(), 0);
  const [sub = ""] = readdirSync(stateDir);
  const words = [
    "--reuid",
    String(NO_ANSWERS),
    "--clear-groups",
    "flock",
    "--nonblock",
    join(stateDir, sub, "lock"),
    "true",
  ];
  const { code, stderr } = await run("setpriv", words);
  assert.notEqual(code, 0);
  assert.match(stderr, /Permission denied/);
});

test("a kernel without owned tables has the next tier of rules, and refuses to be asked for them", async () => {
  // The kernel's answer to an unknown table flag, put in the place of its real one.
  const inject = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=sendto", "-e", "inject=sendto:error=EOPNOTSUPP:when=1"];
  const prefix = ["strace", ...inject];
  {
    await using instance = await startDns11(engine, { prefix, args: ["--keeper", "off"] });
    const { ruleBackend: tier, pid } = await instance.status();
    assert.equal(tier, "nft");
    assert.match(instance.log, /rules of this backend stay when dns11 is killed or hangs/);
    // strace would leave it alone, and go.
    process.kill(pid, "SIGTERM");
    assert.equal(await instance.exited, 0);
  }
  await using instance = new Dns11(engine.host, { prefix, args: ["--rule-backend", "nft-owner"] });
  assert.equal(await instance.exited, 3, instance.log);
  assert.match(instance.log, /does not support process-owned tables[\s\S]*Linux 5\.12/);
});

test("a rootless engine is refused, by what it says of itself", async () => {
  const socket = join(folder, "rootless.sock");
  // What no engine of this rig can be; its two answers are those of a real one, with the option that makes it rootless.
  const version = await engine.api("/version");
  const info = { ...((await engine.api("/info")) as object), SecurityOptions: ["name=seccomp", "name=rootless"] };
  const server = createServer((connection) => {
    connection.on("data", (request) => {
      const body = JSON.stringify(request.includes("GET /version") ? version : info);
      connection.end(
        `HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    });
  }).listen(socket);
  const { code, stderr } = await refused(["run", "-H", `unix://${socket}`, "--state-dir", folder]);
  server.close();
  assert.equal(code, 3, stderr);
  assert.match(stderr, /This engine is rootless[\s\S]*Use an engine that runs as root/);
});

test("a platform that koffi has no build for is named", async () => {
  const copy = join(folder, "copy");
  mkdirSync(join(copy, "node_modules"), { recursive: true });
  for (const part of ["dist", "package.json"]) cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    if (name !== "koffi") symlinkSync(join(ROOT, "node_modules", name), join(copy, "node_modules", name));
  }
  const { code, stderr } = await run(process.execPath, [join(copy, "dist/cmd/dns11.js"), "run", "-H", engine.host]);
  assert.equal(code, 3, stderr);
  assert.match(stderr, /dns11 cannot run on linux\/\w+, glibc [\d.]+: Cannot find package 'koffi'/);
});

test("status says when nothing runs, with 1; and a running one is found by the engine's id", async () => {
  const nothing = await refused(["status", "-H", engine.host, "--state-dir", join(folder, "empty")]);
  assert.equal(nothing.code, 1);
  assert.match(nothing.stderr, /dns11 is not running for this engine[\s\S]*dns11 run/);
  await using instance = await startDns11(engine);
  const found = await dns11(["status", "-H", engine.host, "--state-dir", instance.stateDir]);
  assert.equal(found.code, 0);
  assert.match(found.stdout, /^dns11 \d.*, process \d+, better, ready/);
  const [sub = ""] = readdirSync(instance.stateDir);
  assert.ok(readdirSync(join(instance.stateDir, sub)).includes("control.sock"));
  assert.notEqual(dirname(sub), "/");
});
