/**
 * Proof that a namespace is the container's: the engine's claim is trusted only as far as the kernel confirms it, and our
 * own namespace and the engine's are always refused.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { type EngineHost, closeEngineHost, openEngineHost } from "../../src/container/namespace/engine-host.ts";
import { proveNamespace } from "../../src/container/namespace/proof.ts";
import { Netns, inNetns } from "../support/rig/netns.ts";
import { hold, removeTracked } from "../support/rig/reaper.ts";
import { waitFor } from "../support/rig/wait.ts";

const runner = new NamespaceRunner();
/** Another one in each process: a control group has it as its name. */
const id = `${process.pid}`.padStart(64, "c");
let host: EngineHost;
let netns: Netns;

before(async () => {
  host = openEngineHost(process.pid);
  netns = await Netns.create();
});
after(async () => {
  closeEngineHost(host);
  runner.close();
  await netns[Symbol.asyncDispose]();
});

function prove(claim: { readonly sandboxKey?: string; readonly pid?: number }): string {
  const proven = proveNamespace({ containerId: id, sandboxKey: "", pid: 0, ...claim }, host, runner.homeId);
  closeSync(proven.fd);
  return proven.id;
}

test("a path of the engine's is proof, if it is a network namespace", () => {
  assert.match(prove({ sandboxKey: netns.netnsPath }), /^\d+:\d+$/);
  assert.throws(() => prove({ sandboxKey: "/etc/hostname" }), { code: "NAMESPACE_NOT_READY" });
  assert.throws(() => prove({ sandboxKey: "/run/netns/d11-nobody" }), { code: "NAMESPACE_GONE" });
  assert.throws(() => prove({ sandboxKey: "/proc/self/ns/mnt" }), { code: /NAMESPACE_(GONE|NOT_READY)/ });
});

test("our own namespace is never taken for a container's: container: mode with a host-network container", () => {
  const path = `/run/d11-own-netns-${process.pid}`;
  writeFileSync(path, "");
  spawnSyncOk("mount", ["--bind", "/proc/self/ns/net", path]);
  try {
    assert.throws(() => prove({ sandboxKey: path }), { code: "NAMESPACE_IS_HOST" });
  } finally {
    spawnSyncOk("umount", [path]);
    spawnSyncOk("rm", [path]);
  }
});

test("the engine's namespace is refused, too, if it is not ours", async () => {
  const sleeper = await inside(["sleep", "60"]);
  const engine = openEngineHost(sleeper.pid ?? 0);
  try {
    const claim = { containerId: id, sandboxKey: netns.netnsPath, pid: 0 };
    assert.throws(() => proveNamespace(claim, engine, runner.homeId), { code: "NAMESPACE_IS_HOST" });
  } finally {
    closeEngineHost(engine);
    sleeper.kill("SIGKILL");
  }
});

test("a PID that is another process here is not trusted: its cgroup does not have the container's id", async () => {
  assert.throws(() => prove({ pid: 2 }), { code: "PID_NOT_CONTAINER" });
  const sleeper = await inside(["sleep", "60"]);
  try {
    assert.throws(() => prove({ pid: sleeper.pid ?? 0 }), { code: "PID_NOT_CONTAINER" });
  } finally {
    sleeper.kill("SIGKILL");
  }
});

test("a PID with the container's id in its cgroup is proof; a reused one is not", async () => {
  const leftovers = { id: `d11-${id}` };
  hold(leftovers);
  const sleeper = await inside(["sleep", "60"]);
  const ended = once(sleeper, "close");
  const group = cgroupFolder();
  mkdirSync(group);
  try {
    writeFileSync(`${group}/cgroup.procs`, String(sleeper.pid));
    assert.equal(prove({ pid: sleeper.pid ?? 0 }), prove({ sandboxKey: netns.netnsPath }));
  } finally {
    sleeper.kill("SIGKILL");
    await ended;
    await removeTracked(leftovers);
  }
  assert.throws(() => prove({ pid: sleeper.pid ?? 0 }), { code: /PID_NOT_CONTAINER|NAMESPACE_GONE/ });
});

test("a container without a path or a process is not ready; PIDs of an engine in another PID namespace are not used", () => {
  assert.throws(() => prove({}), { code: "NAMESPACE_NOT_READY" });
  const elsewhere = { ...host, sharesPids: false };
  const claim = { containerId: id, sandboxKey: "", pid: process.pid };
  assert.throws(() => proveNamespace(claim, elsewhere, runner.homeId), { code: "PID_ELSEWHERE" });
});

test("a namespace of a foreign user namespace can be entered", async () => {
  const child = spawn("unshare", ["--user", "--map-root-user", "--net", "sleep", "60"], { stdio: "ignore" });
  try {
    const path = `/proc/${child.pid}/ns/net`;
    await waitFor("the namespace", () => (readlinkSync(path) === readlinkSync("/proc/self/ns/net") ? undefined : true));
    const fd = openSync(path, "r");
    assert.equal(
      runner.within(fd, () => readFileSync("/proc/thread-self/net/dev", "utf8").includes("lo:")),
      true,
    );
    closeSync(fd);
  } finally {
    child.kill("SIGKILL");
  }
});

test("an engine whose process is not visible from here is refused, with a remedy", () => {
  assert.throws(() => openEngineHost(0), { code: "ENGINE_ELSEWHERE", isFinal: true });
  assert.throws(() => openEngineHost(0x3fffff), { code: "ENGINE_ELSEWHERE" });
});

/** Starts a process in the test's namespace and waits until it is there. */
async function inside(command: readonly string[]): Promise<ChildProcess> {
  const [program = "", ...args] = inNetns(netns.netnsPath, command[0] ?? "", command.slice(1));
  const child = spawn(program, args, { stdio: "ignore" });
  await waitFor(`${command[0]} to run`, () =>
    readFileSync(`/proc/${child.pid}/comm`, "utf8").trim() === command[0] ? true : undefined,
  );
  return child;
}

/** A cgroup folder with the container's id, in whichever cgroup hierarchy this machine has. */
function cgroupFolder(): string {
  const line = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .find((mount) => / cgroup2? /.test(mount) && / rw[, ]/.test(mount));
  return `${line?.split(" ")[1]}/d11-${id}`;
}

function spawnSyncOk(command: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
}
