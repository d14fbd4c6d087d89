/**
 * Bad input: each mistake gets a message with what is wrong and what to do, and an exit code that docs/cli.md documents.
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
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { check, run } from "../support/program/command.ts";
import { Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { withoutOwnedTables, withoutTables } from "../support/program/without-owned-tables.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { waitFor } from "../support/rig/wait.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const UNPRIVILEGED_UID = 65_534;
let engine: Engine;
const folder = makeFolder("bad");

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
});
after(async () => {
  await engine[Symbol.asyncDispose]();
});

async function runRefused(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number; stderr: string }> {
  const { code, stderr } = await dns11(args, { env: { DOCKER_HOST: "", ...env } });
  return { code, stderr };
}

test("unknown commands, flags and values are usage errors that name the valid ones", async () => {
  for (const [args, message] of [
    [["serve"], /unknown command 'serve'/],
    [["kind", "statsu"], /unknown command 'statsu'/],
    [["help", "serve"], /unknown command 'serve'/],
    [["help", "cache", "serve"], /unknown command 'serve'/],
    [["run", "--fast"], /unknown option '--fast'/],
    [["run", "--only", "name=web"], /'name=web' is invalid\. Use label=KEY, label=KEY=VALUE or network=NAME/],
    [["run", "--ttl", "soon"], /'soon' is invalid\. Use whole seconds from 0 to 7d, such as 30s or 5m/],
    [["run", "--zone", "co.uk"], /'co\.uk' is invalid\. Use a domain that is yours, such as docker\.co\.uk/],
    [["run", "--zone", "cluster.local", "--kind", "auto"], /would hide the domain of KIND clusters.*use another zone/],
    [["run", "--log-level", "loud"], /'loud' is invalid\. Use one of debug, info, warn, error, silent/],
    [["run", "--dns", "10.0.0"], /'10\.0\.0' is invalid\. .*"host", an IP address or container:NAME/],
    [["run", "--dns-search", "corp"], /search lists are applied by the resolver library in the container/],
    [["run", "--strict", "--zone", "a.test"], /no effect with strict/],
    [["run", "--config", "/nonexistent"], /\/nonexistent/],
    [["run", "--engine-pid", "-1"], /Use a process ID/],
    [["run", "-H", "npipe:////./pipe/docker"], /not a unix socket[\s\S]*-H unix:/],
  ] as const) {
    const { code, stderr } = await runRefused(args);
    assert.equal(code, 2, `${args.join(" ")}: ${stderr}`);
    assert.match(stderr, message);
  }
});

test("a missing engine socket is reported with its path, with exit code 1", async () => {
  const { code, stderr } = await runRefused(["run", "-H", `unix://${folder}/nothing.sock`]);
  assert.equal(code, 1);
  assert.match(stderr, /No engine socket at ".*nothing\.sock"[\s\S]*Check that Docker is installed and running/);
});

test("dns11 waits for an engine that is not running yet, and serves it when it starts", async () => {
  await engine.kill("SIGKILL");
  await using early = new Dns11(engine.host);
  await waitFor("dns11 to log that it waits", () => (early.log.includes("waiting for the engine") ? true : undefined));
  await early.logs(/Connection refused at the engine socket/);
  // As while dockerd makes its socket: nobody may use it yet, and before that there is none.
  chmodSync(engine.socketPath, 0);
  await early.logs(/Permission denied at the engine socket/);
  rmSync(engine.socketPath);
  await early.logs(/No engine socket at/);
  await engine.startDaemon();
  await early.waitUntilReady();
  assert.equal(await early.stop(), 0);
});

test("engines that may be on another machine are refused: tcp, ssh", async () => {
  for (const host of ["tcp://127.0.0.1:2375", "ssh://root@box", "127.0.0.1:2375"]) {
    const { code, stderr } = await runRefused(["run", "-H", host]);
    assert.equal(code, 3, stderr);
    assert.match(stderr, /may be on another machine[\s\S]*run it on that machine/);
  }
  assert.equal((await runRefused(["run"], { DOCKER_HOST: "tcp://127.0.0.1:2375" })).code, 3);
});

test("an engine in a PID namespace that is not visible is refused", async () => {
  const words = ["--pid", "--fork", "--mount-proc", process.execPath, join(ROOT, "dist/cmd/dns11.js")];
  const rest = [...words, "run", "-H", engine.host, "--state-dir", folder];
  const { code, stderr } = await run("unshare", rest);
  assert.equal(code, 3, stderr);
  assert.match(stderr, /Cannot see the engine's process: it runs in another PID namespace[\s\S]*--pid host/);
});

test("missing capabilities are named, with root and without", async () => {
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

test("permission denied at the engine socket is reported", async () => {
  // Without the capabilities that bypass file modes, as in a service with a small bounding set.
  await check("chmod", ["0000", engine.socketPath]);
  await check("chown", ["65534:65534", engine.socketPath]);
  const program = [process.execPath, join(ROOT, "dist/cmd/dns11.js"), "run", "-H", engine.host, "--state-dir", folder];
  const { code, stderr } = await run("setpriv", ["--bounding-set", "-dac_override,-dac_read_search", "--", ...program]);
  await check("chown", ["0:0", engine.socketPath]);
  await check("chmod", ["0660", engine.socketPath]);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /Permission denied at the engine socket "[\s\S]*as root/);
});

test("an unusable state directory is named, with the reason", async () => {
  writeFileSync(join(folder, "file"), "");
  const file = await runRefused(["run", "-H", engine.host, "--state-dir", join(folder, "file")]);
  assert.equal(file.code, 1, file.stderr);
  assert.match(file.stderr, /The state directory ".*file.*" cannot be used: .*ENOTDIR[\s\S]*--state-dir/);
  const long = await runRefused(["run", "-H", engine.host, "--state-dir", join(folder, "x".repeat(120))]);
  assert.match(long.stderr, /too long for a socket path/);
  const enough = Number(/"([^"]*)" is too long/.exec(long.stderr)?.[1]?.length) - 107;
  const longest = join(folder, "x".repeat(120 - enough));
  // A relative one is below the working directory, and an empty variable sets none.
  const relative = ["run", "-H", engine.host, "--state-dir", "relative", "--with", "--", "true"];
  const served = await dns11(relative, { cwd: folder });
  assert.equal(served.code, 0, served.stderr);
  const unset = await runRefused(["status", "-H", engine.host], { DNS11_STATE_DIR: "" });
  assert.match(unset.stderr, /nothing listens at "\/run\/dns11\//);
  await using instance = await startDns11(engine, { stateDir: longest });
  await waitFor("its keeper", async () => ((await instance.status()).keeper.state === "watching" ? true : undefined));
  await instance.stop();
  // With the capabilities that dns11 keeps, root cannot write to folders of other users.
  const foreign = mkdtempSync(join(folder, "f"));
  chownSync(foreign, UNPRIVILEGED_UID, UNPRIVILEGED_UID);
  const denied = await runRefused(["run", "-H", engine.host, "--state-dir", join(foreign, "s")]);
  assert.equal(denied.code, 1, denied.stderr);
  assert.match(denied.stderr, /cannot be used: .*EACCES[\s\S]*owned by root with --state-dir/);
});

test("only root can take the lock of an instance", async () => {
  const stateDir = mkdtempSync(join(folder, "l"));
  chmodSync(stateDir, 0o755);
  chmodSync(folder, 0o755);
  await using instance = await startDns11(engine, { stateDir });
  assert.equal(await instance.stop(), 0);
  const [sub = ""] = readdirSync(stateDir);
  const words = [
    "--reuid",
    String(UNPRIVILEGED_UID),
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

test("on a kernel without owned tables the next rule backend is used, and rule-backend: nft-owner is refused", async () => {
  const prefix = await withoutOwnedTables(folder);
  {
    await using instance = await startDns11(engine, { prefix, settings: { keeper: "off" } });
    const { ruleBackend } = await instance.status();
    assert.equal(ruleBackend, "nft");
    await instance.logs(/rules of this backend stay when dns11 is killed or hangs/);
    assert.equal(await instance.stop(), 0);
  }
  await using instance = new Dns11(engine.host, {
    prefix,
    settings: { "rule-backend": "nft-owner" },
  });
  assert.equal(await instance.exited, 3, instance.log);
  await instance.logs(/does not support process-owned tables[\s\S]*Linux 5\.12/);
});

test("on a kernel without tables of nftables dns11 ends, and names what each rule backend needs", async () => {
  await using instance = new Dns11(engine.host, { prefix: await withoutTables(folder) });
  assert.equal(await instance.exited, 3, instance.log);
  await instance.logs(/Cannot install redirect rules on this machine: [\s\S]*nft needs nf_tables with NAT/);
});

test("a platform without a build of koffi is named", async () => {
  const copy = join(folder, "copy");
  mkdirSync(join(copy, "node_modules"), { recursive: true });
  for (const part of ["dist/cmd", "dist/build.json", "package.json"])
    cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    if (name !== "koffi") symlinkSync(join(ROOT, "node_modules", name), join(copy, "node_modules", name));
  }
  const { code, stderr } = await run(process.execPath, [join(copy, "dist/cmd/dns11.js"), "run", "-H", engine.host]);
  assert.equal(code, 3, stderr);
  assert.match(stderr, /dns11 cannot run on linux\/\w+, glibc [\d.]+: Cannot find module 'koffi'\n {2}Supported/);
});

test("status fails with exit code 1 if dns11 is not running, and finds a running one by the engine's ID", async () => {
  const nothing = await runRefused(["status", "-H", engine.host, "--state-dir", join(folder, "empty")]);
  assert.equal(nothing.code, 1);
  assert.match(nothing.stderr, /dns11 is not running for this engine[\s\S]*dns11 run/);
  await using instance = await startDns11(engine);
  const found = await dns11(["status", "-H", engine.host, "--state-dir", instance.stateDir]);
  assert.equal(found.code, 0);
  assert.match(found.stdout, /^dns11 +\d[^\n]*, ready, up \d+s, pid \d+, \d+ MiB, mode: default\n/);
  const [sub = ""] = readdirSync(instance.stateDir);
  assert.ok(readdirSync(join(instance.stateDir, sub)).includes("control.sock"));
  assert.notEqual(dirname(sub), "/");
});
