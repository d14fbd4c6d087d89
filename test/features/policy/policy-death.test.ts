// An enforced policy and the ends of dns11: while the keeper is there, Docker's resolver gets no name back, whatever happens to the
// main process. The meter is the log of the name server, never dns11's own word.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { QueryLoop, outcomesOf } from "../../support/client/query-loop.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { run } from "../../support/program/command.ts";
import { Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { isAlive } from "../../support/program/main-with-keeper.ts";
import { keeperPath } from "../../../src/api/state-paths.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const ENFORCED = `version: 1
policies:
  agents:
    for: [network=agents]
    mode: enforce
    allow: ["*.ok.test"]
`;
const WITHOUT = "version: 1\n";
const PER_SECOND = 200;
const MOMENTS = 8;
const MOMENT_MS = 150;
const TAKING = fileURLToPath(new URL("../../support/program/taking-main.js", import.meta.url));
const DOCKERS_TTL = 600;

let engine: Engine;
let upstream: Upstream;
let agent: Container;
let free: Container;
let first: Dns11;
let instance: Dns11;
const folder = mkdtempSync(join(tmpdir(), "d11-policy-death-"));
const file = join(folder, "dns11.yaml");
let asked = 0;

before(async () => {
  writeFileSync(file, ENFORCED);
  engine = await startEngine({ suite: "bookworm", liveRestore: true });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "agents");
  await createNetwork(engine, "open");
  agent = await runContainer(engine, { name: "agent", networks: ["agents"] });
  free = await runContainer(engine, { name: "free", networks: ["open"] });
  instance = first = await startDns11(engine, { args: ["--config", file] });
  await untilKept();
});
after(async () => {
  rmSync(folder, { recursive: true });
  await instance[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

// Both containers are served, and the keeper knows it.
async function untilKept(not?: number): Promise<number> {
  return await waitFor("its keeper", async () => {
    const { keeper, containers } = await instance.status();
    const isServed = containers.every(({ state }) => state === "attached");
    const isWatching = keeper.state === "watching" && keeper.namespaces === 2 && keeper.pid !== not;
    return isServed && isWatching ? (keeper.pid ?? undefined) : undefined;
  });
}

async function restart(): Promise<void> {
  instance = await startDns11(engine, { args: ["--config", file], stateDir: first.stateDir });
  await untilKept();
}

// Names that the policy refuses, at a high rate, through whatever `act` does; none of them may arrive anywhere.
async function withNoLeak(act: () => Promise<void>): Promise<Record<string, number>> {
  const zone = `evil-${(asked += 1)}.test`;
  const denied = await QueryLoop.start(agent, { name: zone, isEachNew: true, perSecond: PER_SECOND });
  await act();
  const ends = await denied.stop();
  assert.ok(ends.length > 0, "queries were sent");
  const leaked = (await upstream.queries()).filter(({ name }) => name.endsWith(zone));
  assert.equal(leaked.length, 0, `${leaked.length} of ${ends.length}, such as ${leaked[0]?.name}\n${instance.log}`);
  const outcomes = outcomesOf(ends);
  // What a process had read when it was killed is lost.
  const others = Object.keys(outcomes).filter((each) => !["NXDOMAIN", "SERVFAIL", "timeout"].includes(each));
  assert.deepEqual(others, [], JSON.stringify(outcomes));
  return outcomes;
}

async function assertRefusing(): Promise<void> {
  let raw = "";
  try {
    await waitFor("the keeper to refuse", async () => {
      const reply = await dig(agent, "+time=1", "+tries=1", "a.ok.test");
      ({ raw } = reply);
      return reply.status === "SERVFAIL" ? true : undefined;
    });
  } catch (error) {
    throw new Error(`${raw}\n${instance.log}`, { cause: error });
  }
  const reply = await dig(agent, "+tcp", "a.ok.test");
  assert.deepEqual([reply.status, reply.answer.length], ["SERVFAIL", 0]);
  // Names of containers, too, and at once.
  assert.equal((await dig(agent, "+time=1", "+tries=1", "agent")).status, "SERVFAIL");
}

async function assertHandedBack(): Promise<void> {
  await waitFor("Docker's answer to others", async () =>
    (await dig(free, "+time=1", "+tries=1", "free")).answer[0]?.ttl === DOCKERS_TTL ? true : undefined,
  );
  assert.doesNotMatch((await free.enter("nft", ["list", "tables"])).stdout, /dns11/);
}

// As if it had crashed dns11 three times.
async function quarantineAgent(): Promise<void> {
  instance.kill("SIGKILL");
  await instance.ended();
  const [name = ""] = readdirSync(first.stateDir);
  const until = { untilMs: Date.now() + 3_600_000, doing: "answering", times: 1 };
  const history = { deaths: [], quarantines: { [agent.id]: until } };
  writeFileSync(join(first.stateDir, name, "deaths.json"), JSON.stringify(history));
  instance = await startDns11(engine, { args: ["--config", file], stateDir: first.stateDir });
  await instance.waitFor("agent", "quarantined");
}

async function releaseAgent(): Promise<void> {
  await dns11(["doctor", "agent", "--fix", "-H", engine.host, "--state-dir", first.stateDir]);
}

async function assertServing(): Promise<void> {
  assert.deepEqual(dataOf(await dig(agent, "a1.ok.test")), ["192.0.2.1"]);
  assert.equal((await dig(agent, "evil.test")).status, "NXDOMAIN");
  assert.equal((await dig(free, "free")).answer[0]?.ttl, 5);
}

for (const [what, signal] of [
  ["is killed", "SIGKILL"],
  ["hangs", "SIGSTOP"],
  ["is stopped", "SIGTERM"],
] as const) {
  test(`dns11 ${what}: its keeper refuses, others have Docker's resolver, and the next one goes on`, async () => {
    const keeper = await untilKept();
    const outcomes = await withNoLeak(async () => {
      instance.kill(signal);
      await instance.ended();
      await assertRefusing();
      await assertHandedBack();
      assert.ok(isAlive(keeper), "the keeper goes on");
      await restart();
      assert.equal((await instance.status()).keeper.pid, keeper, "the keeper stays the same");
    });
    assert.ok((outcomes["SERVFAIL"] ?? 0) > 0, JSON.stringify(outcomes));
    await assertServing();
  });
}

test("a keeper that is alone lets no process of another PID namespace take over", async () => {
  instance.kill("SIGKILL");
  await instance.ended();
  await assertRefusing();
  const [name = ""] = readdirSync(first.stateDir);
  const path = keeperPath(join(first.stateDir, name));
  const { stdout } = await run("unshare", ["--pid", "--fork", "--mount-proc", process.execPath, TAKING, path]);
  assert.match(stdout, /its keeper exited, or another new process is taking over/);
  await assertRefusing();
  await restart();
  await assertServing();
});

test("the keeper alone is killed: another one is started, and refuses in its turn", async () => {
  const keeper = await untilKept();
  await withNoLeak(async () => {
    process.kill(keeper, "SIGKILL");
    await untilKept(keeper);
    instance.kill("SIGKILL");
    await instance.ended();
    await assertRefusing();
    await restart();
  });
  await assertServing();
});

test("a replacement answers or refuses every query", async () => {
  const outcomes = await withNoLeak(async () => {
    instance = await replaceDns11(engine, instance, { args: ["--config", file] });
    await untilKept();
  });
  assert.equal(outcomes["SERVFAIL"], undefined, "the keeper had nothing to refuse");
  await assertServing();
});

test("a new process that is killed at any moment of its start leaves the keeper refusing", async () => {
  await withNoLeak(async () => {
    instance.kill("SIGKILL");
    await instance.ended();
    await assertRefusing();
    // A start takes about half a second of processor time, and the takeover is at its end.
    for (let ms = MOMENT_MS; ms <= MOMENTS * MOMENT_MS; ms += MOMENT_MS) {
      const killed = new Dns11(engine.host, { args: ["--config", file], stateDir: first.stateDir });
      await pause(ms);
      killed.kill("SIGKILL");
      await killed.ended();
      await assertRefusing();
      await assertHandedBack();
      // It has answered, and who is killed three times while it answers a container quarantines that.
      if (killed.log.includes("took over")) break;
    }
    await restart();
  });
  await assertServing();
});

test("a restart of dockerd changes nothing", async () => {
  await withNoLeak(async () => {
    instance.kill("SIGKILL");
    await instance.ended();
    await assertRefusing();
    await engine.restartDaemon();
    await assertRefusing();
    await restart();
  });
  await assertServing();
});

test("cleanup refuses to open what the keeper refuses, and does it with --policies", async () => {
  instance.kill("SIGKILL");
  await instance.ended();
  await assertRefusing();
  const cleanup = async (...args: string[]): Promise<{ code: number | string; output: string }> => {
    const { code, stdout, stderr } = await dns11([
      ...["cleanup", "-H", engine.host, "--state-dir", first.stateDir, ...args],
    ]);
    return { code: code ?? "", output: stdout + stderr };
  };
  const refused = await cleanup();
  assert.notEqual(refused.code, 0);
  assert.match(refused.output, /1 container.*--policies/s);
  await assertRefusing();
  const done = await cleanup("--policies");
  assert.equal(done.code, 0, done.output);
  assert.equal((await dig(agent, "agent")).answer[0]?.ttl, DOCKERS_TTL);
  await restart();
  await assertServing();
});

test("a container that was served on trial before is refused, too", async () => {
  await untilKept();
  instance.kill("SIGKILL");
  await instance.ended();
  await assertRefusing();
  const env = { DNS11_ANSWERS: "process" };
  instance = await startDns11(engine, { args: ["--config", file], env, stateDir: first.stateDir });
  await untilKept();
  const chain = "{ type filter hook output priority -400; ip daddr 127.0.0.11 drop; }";
  await agent.enter("nft", [`add table ip foreign; add chain ip foreign out ${chain}`]);
  await instance.waitFor("agent", "failed");
  await agent.enter("nft", ["delete table ip foreign"]);
  await untilKept();
  instance.kill("SIGKILL");
  await instance.ended();
  await assertRefusing();
  await restart();
});

test("a container that is quarantined is refused, until it is released", async () => {
  const keeper = await untilKept();
  await withNoLeak(async () => {
    await quarantineAgent();
    await assertRefusing();
    assert.equal((await dig(free, "free")).answer[0]?.ttl, 5);
    // Another process goes on with that, and so does the keeper without any.
    instance = await replaceDns11(engine, instance, { args: ["--config", file] });
    await assertRefusing();
    instance.kill("SIGKILL");
    await instance.ended();
    await assertRefusing();
    instance = await startDns11(engine, { args: ["--config", file], stateDir: first.stateDir });
    await assertRefusing();
    await releaseAgent();
    assert.equal(await untilKept(), keeper);
  });
  await assertServing();
  // Its own program is at lo: that of the process before would lead queries nowhere, as soon as nobody holds its tables.
  assert.deepEqual((await instance.container("agent"))?.answers, { by: "kernel" });
});

test("a quarantined container that starts again has Docker's resolver, and the log says so", async () => {
  const left = "a policy is enforced, but Docker's resolver answers from now on";
  await untilKept();
  await quarantineAgent();
  await assertRefusing();
  assert.doesNotMatch(instance.log, new RegExp(left));
  await agent.restart();
  await instance.logs(new RegExp(`"container":"agent".*${left}`));
  await waitFor("the keeper to let go of its old namespace", async () =>
    (await instance.status()).keeper.namespaces === 1 ? true : undefined,
  );
  await releaseAgent();
  await untilKept();
  await assertServing();
});

test("where the settings enforce nothing any more, everything is handed back", async () => {
  instance.kill("SIGKILL");
  await instance.ended();
  await assertRefusing();
  writeFileSync(file, WITHOUT);
  await restart();
  await dig(agent, "open.evil.test");
  assert.ok((await upstream.queriesFor("open.evil.test")).length > 0, "it is forwarded");
  instance.kill("SIGKILL");
  await waitFor("Docker's answer", async () =>
    (await dig(agent, "+time=1", "+tries=1", "agent")).answer[0]?.ttl === DOCKERS_TTL ? true : undefined,
  );
  writeFileSync(file, ENFORCED);
  await restart();
  await assertServing();
});
