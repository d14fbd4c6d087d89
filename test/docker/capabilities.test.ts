/**
 * Capabilities of dns11: no more than it needs, in every thread and from the start, and that they are enough. The sets are
 * read from /proc for all threads that the kernel lists.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, test } from "node:test";

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { run } from "../support/program/command.ts";
import { Dns11, dns11 as command, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { inNetns } from "../support/rig/netns.ts";
import { textOf } from "../support/rig/text-of.ts";
import { waitFor } from "../support/rig/wait.ts";

// By the kernel's numbers: CHOWN, DAC_READ_SEARCH, NET_ADMIN, SYS_PTRACE, SYS_ADMIN.
const NEEDED = maskOf(0, 2, 12, 19, 21);
const SECCOMP = new URL("../../src/kernel/seccomp.js", import.meta.url).href;
const DENIED = new URL("../../src/keeper/denied-calls.js", import.meta.url).href;
const UNIT = new URL("../../../scripts/systemd/dns11.service", import.meta.url);
const NO_KEEPER = { keeper: "off" };
const REQUIRED = "+net_admin,+sys_admin,+sys_ptrace";

let engine: Engine;

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "n1");
});
after(async () => {
  await engine[Symbol.asyncDispose]();
});

test("every thread has only the needed capabilities in every set and a filter of system calls, and the process keeps its PID", async () => {
  await using web = await runContainer(engine, { name: "web", networks: ["n1"] });
  await using dns11 = await startDns11(engine, { prefix: [] });
  assert.equal((await dns11.status()).pid, dns11.pid, "a supervisor knows this PID");
  assert.deepEqual(dataOf(await dig(web, "web")), [web.address("n1")]);
  const threads = setsOf(dns11.pid);
  assert.ok(threads.length > 4);
  const keeper = await waitFor("its keeper", async () => (await dns11.status()).keeper.pid ?? undefined);
  for (const pid of [dns11.pid, keeper]) {
    for (const { status } of statusesOf(pid)) assert.match(status, /^Seccomp:\s+2$/m);
  }
  for (const { thread, sets } of threads) {
    const { CapEff, CapPrm, CapBnd, CapInh, CapAmb } = sets;
    assert.deepEqual([CapEff, CapPrm, CapBnd, CapInh, CapAmb], [NEEDED, NEEDED, NEEDED, 0n, 0n], `thread ${thread}`);
  }
  const { capabilities } = await dns11.status();
  assert.equal(capabilities.length, 1, "all threads have the same sets");
  assert.deepEqual(capabilities[0]?.bounding, [
    "CAP_CHOWN",
    "CAP_DAC_READ_SEARCH",
    "CAP_NET_ADMIN",
    "CAP_SYS_PTRACE",
    "CAP_SYS_ADMIN",
  ]);
  const environment = readFileSync(`/proc/${dns11.pid}/environ`, "utf8");
  assert.match(environment, /DNS11_RESTARTED/, "it executed itself again");
  await dns11.logs(/"serving"/);
  const { stdout } = await command(["status", "-o", "wide", "-H", engine.host, "--state-dir", dns11.stateDir]);
  assert.match(
    stdout,
    /capabilities +CAP_CHOWN, CAP_DAC_READ_SEARCH, CAP_NET_ADMIN, CAP_SYS_PTRACE, CAP_SYS_ADMIN \(\d+ threads\)\n/,
  );
  assert.equal(await dns11.stop(), 0);
  assert.equal((await dig(web, "web")).answer[0]?.ttl, 600, "handed back");
});

test("system calls that it never makes are denied to child processes", async () => {
  const program = `
    import { denyCalls } from ${JSON.stringify(SECCOMP)};
    import { DENIED_TO_MAIN } from ${JSON.stringify(DENIED)};
    import { spawnSync } from "node:child_process";
    const stderrOf = (command, ...args) => spawnSync(command, args, { encoding: "utf8" }).stderr;
    console.log(denyCalls(DENIED_TO_MAIN));
    console.log(stderrOf("mount", "-t", "tmpfs", "none", "/mnt"));
    console.log(stderrOf("strace", "-qq", "-e", "trace=none", "true"));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program]);
  assert.match(stdout, /^true$/m);
  assert.match(stdout, /mount.*permission denied|must be superuser/i);
  assert.match(stdout, /ptrace.*Operation not permitted/);
});

test("the three required capabilities are enough, and no restart is needed with them and the unit's variables", async () => {
  await using web = await runContainer(engine, { name: "web", networks: ["n1"] });
  const prefix = ["setpriv", "--bounding-set", `-all,${REQUIRED}`, "--inh-caps", "-all", "env", ...unitVariables()];
  await using dns11 = await startDns11(engine, { prefix, settings: NO_KEEPER });
  assert.deepEqual(dataOf(await dig(web, "web")), [web.address("n1")]);
  for (const { sets } of setsOf(dns11.pid)) assert.equal(sets["CapPrm"], maskOf(12, 19, 21));
  assert.doesNotMatch(readFileSync(`/proc/${dns11.pid}/environ`, "utf8"), /DNS11_RESTARTED/);
  await dns11.logs(/"serving"/);
  assert.doesNotMatch(dns11.log, /cannot drop these capabilities/);
});

test("capabilities that cannot be dropped are logged", async () => {
  const prefix = ["setpriv", "--bounding-set", `-all,${REQUIRED},+net_bind_service`, "--inh-caps", "-all"];
  await using dns11 = await startDns11(engine, { prefix, settings: NO_KEEPER });
  await dns11.logs(/"excess":\["CAP_NET_BIND_SERVICE"\].*cannot drop these capabilities/);
});

test("a missing capability is an error", async () => {
  const prefix = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-all"];
  await using dns11 = new Dns11(engine.host, { prefix });
  assert.equal(await dns11.exited, 3);
  await dns11.logs(/Missing capabilities: CAP_SYS_PTRACE/);
});

test("a metrics port below 1024 keeps CAP_NET_BIND_SERVICE", async () => {
  await using dns11 = await startDns11(engine, {
    // In the engine's namespace no other program has the port.
    prefix: inNetns(engine.netnsPath, "env"),
    args: ["--metrics-addr", "127.0.0.93:911"],
    settings: NO_KEEPER,
  });
  for (const { sets } of setsOf(dns11.pid)) assert.equal(sets["CapEff"], NEEDED | maskOf(10));
  assert.equal((await dns11.status()).metrics, "127.0.0.93:911");
});

/** What the unit sets, so that the program that it starts has it from the beginning. */
function unitVariables(): string[] {
  const unit = readFileSync(UNIT, "utf8");
  return [...unit.matchAll(/^Environment=(.+)$/gm)].map(([, variable = ""]) => variable);
}

function maskOf(...numbers: readonly number[]): bigint {
  return numbers.reduce((mask, number) => mask | (1n << BigInt(number)), 0n);
}

/** Of its threads, without those that end meanwhile. */
function statusesOf(pid: number): { thread: string; status: string }[] {
  return readdirSync(`/proc/${pid}/task`)
    .map((thread) => ({ thread, status: textOf(`/proc/${pid}/task/${thread}/status`) }))
    .filter(({ status }) => status !== "");
}

function setsOf(pid: number): { thread: string; sets: Record<string, bigint> }[] {
  return statusesOf(pid).map(({ thread, status }) => {
    const sets = [...status.matchAll(/^(Cap\w+):\s*([0-9a-f]+)$/gm)].map(([, name = "", hex = ""]) => [
      name,
      BigInt(`0x${hex}`),
    ]);
    return { thread, sets: Object.fromEntries(sets) as Record<string, bigint> };
  });
}
