// Tests of the systemd unit without systemd as process 1: systemd accepts it, it does not bind dns11 to dockerd, and
// dns11 with exactly its capabilities, on a file system that is read-only except for its runtime folder, makes no
// system call and opens no kind of socket that the unit forbids, from start to exit.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";

import { procText } from "../../src/kernel/process.ts";
import { run } from "../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { ServiceUnit } from "../support/program/service-unit.ts";
import { waitFor } from "../support/rig/wait.ts";

const PATH = "scripts/systemd/dns11.service";
const unit = new ServiceUnit(PATH);
/** strace slows every call. */
const TRACED_MS = 300_000;
let engine: Engine;
let web: Container;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "shop", { ipv6: true });
  web = await runContainer(engine, { name: "web", networks: ["shop"] });
  await runContainer(engine, { name: "db", networks: ["shop"] });
});
after(async () => await engine[Symbol.asyncDispose]());

test("systemd-analyze verify accepts the unit, and the one of a user", async () => {
  for (const [source, manager] of [
    [PATH, "--system"],
    ["scripts/systemd/dns11-boot.service", "--system"],
    ["scripts/systemd/user/dns11.service", "--user"],
  ] as const) {
    // The program is not installed here, which would be the only complaint.
    const path = join(engine.folder, basename(source));
    writeFileSync(path, readFileSync(source, "utf8").replaceAll("/usr/bin/dns11", "/bin/true"));
    const words = ["verify", manager, "--man=no", "--recursive-errors=no", path];
    const { code, stdout, stderr } = await run("systemd-analyze", words, {
      env: { XDG_RUNTIME_DIR: engine.folder },
    });
    assert.deepEqual([code, stdout + stderr], [0, ""]);
  }
});

test("systemd-analyze security rates the exposure below 5", async () => {
  const { stdout } = await run("systemd-analyze", ["security", "--no-pager", "--offline=true", PATH]);
  const [, exposure] = /Overall exposure level for dns11\.service: ([\d.]+)/.exec(stdout) ?? [];
  // Entering namespaces needs these privileges; a service without restrictions has 9.6.
  assert.ok(Number(exposure) < 5, stdout);
});

test("the unit wants dockerd and starts after it, but does not stop with it", () => {
  assert.ok(unit.words("Wants").includes("docker.service"));
  assert.ok(unit.words("After").includes("docker.service"));
  for (const key of ["Requires", "BindsTo", "PartOf", "Requisite"]) assert.ok(!unit.keys.includes(key), key);
  assert.deepEqual([unit.value("Type"), unit.value("Restart")], ["notify", "always"]);
  assert.equal(unit.value("ExecReload"), "/usr/bin/dns11 reload --pid $MAINPID");
  assert.equal(unit.value("ExecStopPost"), "-/usr/bin/dns11 cleanup");
  // dns11's hang alarm ends a hang before the watchdog does.
  assert.ok(Number(unit.value("WatchdogSec")) > 8);
});

test("with only the unit's privileges dns11 serves, reloads its settings and cleans up", async () => {
  const stateDir = join(engine.folder, "state");
  const trace = join(engine.folder, "trace");
  mkdirSync(stateDir);
  mkdirSync(trace);
  const settings = join(stateDir, "dns11.yaml");
  writeFileSync(settings, "version: 1\n");
  const prefix = [...confined(stateDir, trace), "strace", "-qq", "-ff", "-o", join(trace, "calls")];
  const instance = await startDns11(engine, { prefix, stateDir, args: ["--config", settings], readyMs: TRACED_MS });
  try {
    assert.equal((await dig(web, "db")).answer[0]?.ttl, 5);
    assert.equal((await dig(web, "+tcp", "db")).status, "NOERROR");
    await dig(web, "example.ok.test");
    const late = await runContainer(engine, { name: "late", networks: ["shop"] });
    await instance.waitFor("late", "attached");
    await late.remove();
    writeFileSync(settings, "version: 1\nttl: 9\n");
    // strace does not forward signals; its child is the serving process.
    process.kill((await instance.status()).pid, "SIGHUP");
    await waitFor("the new settings", async () => ((await dig(web, "db")).answer[0]?.ttl === 9 ? true : undefined));
    const { pid } = await instance.status();
    const threads = readdirSync(`/proc/${pid}/task`);
    const wanted = capabilityMask();
    for (const thread of threads) {
      const status = procText(`/proc/${pid}/task/${thread}/status`);
      // The thread that attaches the kernel's programs ends after a while.
      if (status === undefined) continue;
      for (const set of ["CapEff", "CapPrm", "CapBnd"]) {
        const [, mask = ""]: readonly string[] = new RegExp(`^${set}:\\s+(\\w+)$`, "m").exec(status) ?? [];
        assert.equal(BigInt(`0x${mask}`), wanted, `${set} of thread ${thread}`);
      }
      assert.match(status, /^NoNewPrivs:\s+1$/m);
    }
    assert.ok(threads.length > 4);
    process.kill(pid, "SIGTERM");
    assert.equal(await instance.exited, 0);
  } finally {
    await instance[Symbol.asyncDispose]();
  }
  const calls = readdirSync(trace).flatMap((name) => readFileSync(join(trace, name), "utf8").split("\n"));
  const allowed = await unit.allowedCalls();
  assert.ok(allowed.size > 200);
  const made = new Set(calls.map((line) => /^(\w+)\(/.exec(line)?.[1]).filter((name) => name !== undefined));
  for (const expected of ["setns", "unshare", "sendmmsg", "openat2"]) assert.ok(made.has(expected), expected);
  assert.deepEqual(
    [...made].filter((name) => !allowed.has(name)),
    [],
  );
  const families = new Set(
    calls.map((line) => /^socket(?:pair)?\((\w+)/.exec(line)?.[1]).filter((name) => name !== undefined),
  );
  const open = unit.words("RestrictAddressFamilies");
  assert.deepEqual(
    [...families].filter((name) => !open.includes(name)),
    [],
  );
  const entered = new Set(calls.map((line) => /^(?:setns\(\d+, |unshare\()(\w+)/.exec(line)?.[1]).filter(Boolean));
  assert.deepEqual([...entered], ["CLONE_NEWNET"]);
  assert.equal(unit.value("RestrictNamespaces"), "net");
});

test("cleanup works with the same privileges after a kill", async () => {
  const stateDir = join(engine.folder, "killed");
  mkdirSync(stateDir);
  const instance = await startDns11(engine, { prefix: confined(stateDir), stateDir });
  instance.kill("SIGKILL");
  await instance.exited;
  const [command = "", ...args] = confined(stateDir);
  const cleanup = [process.execPath, "dist/cmd/dns11.js", "cleanup", "-H", engine.host, "--state-dir", stateDir];
  const { code, stdout, stderr } = await run(command, [...args, ...cleanup]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^removed /m);
  assert.deepEqual(readdirSync(stateDir), []);
});

test("with a capability missing dns11 exits and names it", async () => {
  for (const name of unit.words("CapabilityBoundingSet").filter((each) => each !== "CAP_CHOWN")) {
    const words = ["run", "-H", engine.host, "--state-dir", engine.folder];
    const { code, stderr } = await run("setpriv", [
      `--bounding-set=-${short(name)}`,
      process.execPath,
      "dist/cmd/dns11.js",
      ...words,
    ]);
    assert.equal(code, 3);
    assert.match(stderr, new RegExp(`Missing capabilities: ${name} \\(`));
  }
  assert.equal((await dns11(["version"])).code, 0);
});

// The unit's capabilities and no others, no new privileges, without its private /home and /tmp, and everything
// read-only except the folders of this run.
function confined(...writable: readonly string[]): string[] {
  const given = unit.words("CapabilityBoundingSet").map((name) => `+${short(name)}`);
  const script = `
    mount --make-rprivate /
    for folder in "$@"; do
      [ "$folder" = -- ] && break
      mount --bind "$folder" "$folder"
    done
    while read -r _ _ _ _ path _; do
      case $path in /etc*|/usr*|/) mount -o remount,bind,ro "$path" 2>/dev/null;; esac
    done </proc/self/mountinfo
    while [ "$1" != -- ]; do shift; done
    shift
    test -w /etc && exit 99
    exec "$@"`;
  return [
    ...["unshare", "--mount", "sh", "-c", script, "sh", ...writable, "--"],
    ...[
      "setpriv",
      "--no-new-privs",
      "--inh-caps=-all",
      "--ambient-caps=-all",
      `--bounding-set=-all,${given.join(",")}`,
    ],
  ];
}

function capabilityMask(): bigint {
  const bits: Record<string, number> = { CAP_CHOWN: 0, CAP_NET_ADMIN: 12, CAP_SYS_PTRACE: 19, CAP_SYS_ADMIN: 21 };
  return unit.words("CapabilityBoundingSet").reduce((mask, name) => mask | (1n << BigInt(bits[name] ?? 63)), 0n);
}

function short(name: string): string {
  return name.replace(/^CAP_/, "").toLowerCase();
}
