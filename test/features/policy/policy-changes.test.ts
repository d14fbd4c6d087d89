// Policies come and go on a live engine: by settings, networks, labels, containers and processes of dns11 that start and end. The
// meter is the log of the upstream server.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { QueryLoop, outcomesOf } from "../../support/client/query-loop.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import type { PoliciesReport } from "../../../src/api/policies.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let agent: Container;
let free: Container;
let db: Container;
let instance: Dns11;
const folder = mkdtempSync(join(tmpdir(), "d11-policies-"));
const file = join(folder, "dns11.yaml");

const HEAD = "version: 1\nanswers: kernel\n";
const USUAL = `${HEAD}policies:
  agents: {for: [network=agents], mode: enforce, allow: [exact.ok.test, "**.good.ok.test"], new-names-per-minute: 10000}
  other: {mode: enforce, allow: [other.ok.test, exact.ok.test]}
`;

before(async () => {
  writeFileSync(file, USUAL);
  // The other file about policies runs on the oldest one.
  engine = await startEngine();
  upstream = await startUpstream(engine);
  for (const network of ["agents", "open"]) await createNetwork(engine, network);
  agent = await runContainer(engine, { name: "agent", networks: ["agents"] });
  free = await runContainer(engine, { name: "free", networks: ["open"] });
  db = await runContainer(engine, { name: "db", networks: ["agents", "open"] });
  instance = await startDns11(engine, { args: ["--config", file] });
  await instance.waitForKernel();
});
after(async () => {
  rmSync(folder, { recursive: true });
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function reload(text: string): Promise<void> {
  writeFileSync(file, text);
  await instance.reload();
}

async function status(container: Container, name: string): Promise<string> {
  return (await dig(container, "+nocookie", name)).status;
}

async function policies(): Promise<PoliciesReport> {
  return await instance.client.policies();
}

/** Waits until the next query of a container gets this. */
async function becomes(container: Container, name: string, expected: string): Promise<void> {
  await waitFor(`${name} to be ${expected} in ${container.name}`, async () =>
    (await status(container, name)) === expected ? true : undefined,
  );
}

test("the very next query after a reload is judged, also one that the kernel has answered", async () => {
  const denied = `${HEAD}policies:\n  all: {for: [network=open], mode: enforce, deny: [db]}\n`;
  for (let round = 0; round < 10; round++) {
    // From the second query on by the kernel.
    for (let n = 0; n < 3; n++) assert.deepEqual(dataOf(await dig(free, "+nocookie", "db")), [db.address("open")]);
    await reload(denied);
    assert.equal(await status(free, "db"), "NXDOMAIN");
    await reload(USUAL);
  }
  const { counters } = (await instance.container("free")) ?? {};
  assert.ok((counters?.["kernel"] ?? 0) >= 10, JSON.stringify(counters));
});

test("a mistake in the settings leaves the policies in force", async () => {
  await assert.rejects(reload(USUAL.replace("mode: enforce", "mode: enforced")), /mode: invalid value .*enforced/);
  await assert.rejects(reload(USUAL.replace("exact.ok.test", "exact..test")), /invalid name/);
  await assert.rejects(reload(`${HEAD}policies: {agents: {for: [network=agents]}}\n`), /has no mode/);
  await upstream.forget();
  assert.equal(await status(agent, "evil.ok.test"), "NXDOMAIN");
  assert.deepEqual(await upstream.queriesFor("evil.ok.test"), []);
  assert.equal(await status(agent, "exact.ok.test"), "NOERROR");
  await reload(USUAL);
});

/** Denied and allowed names in turn, each new, while something happens. */
async function underLoad(happens: () => Promise<void>): Promise<void> {
  await upstream.forget();
  await using denied = await QueryLoop.start(agent, { name: "evil.ok.test", isEachNew: true, perSecond: 50 });
  await using allowed = await QueryLoop.start(agent, { name: "good.ok.test", isEachNew: true, perSecond: 25 });
  await happens();
  const [no, yes] = [outcomesOf(await denied.stop()), outcomesOf(await allowed.stop())];
  const leaked = (await upstream.queries()).filter(({ name }) => name.toLowerCase().includes("evil"));
  assert.deepEqual(leaked, []);
  assert.deepEqual([Object.keys(no), Object.keys(yes)], [["NXDOMAIN"], ["NOERROR"]], JSON.stringify([no, yes]));
}

test("reloads under load let nothing out, and refuse nothing that is allowed", async () => {
  await underLoad(async () => {
    for (let round = 0; round < 20; round++) {
      await reload(
        round % 2 === 0 ? `${USUAL}ttl: 7\n` : USUAL.replace("exact.ok.test", "exact.ok.test, more.ok.test"),
      );
    }
    await reload(USUAL);
  });
});

test("a replacement under load lets nothing out, and refuses nothing that is allowed", async () => {
  await underLoad(async () => {
    for (let round = 0; round < 3; round++) {
      const old = instance;
      instance = await replaceDns11(engine, old, { args: ["--config", file] });
    }
  });
});

test("where queries stop arriving nobody else answers, and dns11 goes on when they arrive again", async () => {
  const chain = "chain out { type filter hook output priority -250; udp dport 53 drop; tcp dport 53 drop; };";
  await upstream.forget();
  await agent.enter("nft", [`table inet wall { ${chain} }`]);
  const { code, isHeld } = await instance.waitFor("agent", "failed");
  assert.deepEqual([code, isHeld], ["UNVERIFIED", true]);
  const logged = /not attached, nobody answers instead, because a policy is enforced/;
  await waitFor("the warning", () => (logged.test(instance.log) ? true : undefined));
  const { stdout } = await dns11(["doctor", "agent", "--state-dir", instance.stateDir, "-H", engine.host]);
  assert.match(stdout, /dns11 could not attach \(UNVERIFIED\), and a policy is enforced, so nobody else answers/);
  assert.equal((await policies()).containers.find(({ container }) => container === "agent")?.notServed, null);
  await agent.enter("nft", ["delete", "table", "inet", "wall"]);
  // What stays are dns11's rules, and it answers by them before it has verified that.
  assert.equal(await status(agent, "evil6.ok.test"), "NXDOMAIN");
  await instance.waitFor("agent", "attached");
  assert.deepEqual(await upstream.queriesFor("evil6.ok.test"), []);
});

test("a replacement with other policies is in force when it is ready, also for what the kernel has answered", async () => {
  for (let n = 0; n < 3; n++) assert.equal(await status(free, "db"), "NOERROR");
  writeFileSync(file, `${USUAL}  all: {for: [network=open], mode: enforce, deny: [db]}\n`);
  instance = await replaceDns11(engine, instance, { args: ["--config", file] });
  assert.equal(await status(free, "db"), "NXDOMAIN");
  await reload(USUAL);
  assert.equal(await status(free, "db"), "NOERROR");
});

test("the verdict is of one asker, not of those who wait for the same reply", async () => {
  await upstream.forget();
  const [asked, refused] = await Promise.all([dig(free, "700.slow.test"), dig(agent, "700.slow.test")]);
  assert.deepEqual([asked.status, refused.status], ["NOERROR", "NXDOMAIN"]);
  // It is in the cache now, for those who may ask for it.
  assert.equal(await status(agent, "700.slow.test"), "NXDOMAIN");
});

test("an answer that arrives after a reload which refuses it is not given", async () => {
  await reload(USUAL.replace("exact.ok.test", "exact.ok.test, answer.held.test"));
  await upstream.forget();
  const waiting = dig(agent, "answer.held.test");
  await waitFor("the query to be at the server", async () =>
    (await upstream.queriesFor("answer.held.test")).length > 0 ? true : undefined,
  );
  await reload(USUAL);
  upstream.release();
  assert.equal((await waiting).status, "NXDOMAIN");
});

test("a policy follows the networks of a container", async () => {
  await free.connect("agents");
  await becomes(free, "evil2.ok.test", "NXDOMAIN");
  await free.disconnect("agents");
  await becomes(free, "evil2.ok.test", "NOERROR");
});

test("a label chooses a policy, one that nobody has defined refuses what is forwarded, and none opts out", async () => {
  const label = (value: string, more = {}): { labels: Record<string, string> } => ({
    labels: { "io.dns11.policy": value, ...more },
  });
  await using chosen = await runContainer(engine, { name: "chosen", networks: ["open"], ...label("other") });
  await becomes(chosen, "evil3.ok.test", "NXDOMAIN");
  assert.equal(await status(chosen, "other.ok.test"), "NOERROR");
  await using typo = await runContainer(engine, { name: "typo", networks: ["open"], ...label("othr") });
  await becomes(typo, "other.ok.test", "NXDOMAIN");
  assert.deepEqual(dataOf(await dig(typo, "db")), [db.address("open")]);
  const off = { "io.dns11.enable": "false" };
  await using out = await runContainer(engine, { name: "out", networks: ["agents"], labels: off });
  await becomes(out, "evil4.ok.test", "NXDOMAIN");
  const { containers } = await policies();
  const problems = containers.filter((each) => each.problems.length > 0);
  assert.deepEqual(
    problems.map(({ container }) => container),
    ["typo"],
  );
  assert.match(problems[0]?.problems[0] ?? "", /chooses a policy that the settings do not define/);
  const { stdout } = await dns11(["doctor", "typo", "--state-dir", instance.stateDir, "-H", engine.host]);
  assert.match(stdout, /policy that the settings do not define/);
});

test("of two policies on one namespace each must allow a name, and doctor names them", async () => {
  await using inside = await runContainer(engine, {
    name: "inside",
    args: ["--network", "container:agent", "--label", "io.dns11.policy=other"],
  });
  await becomes(inside, "a.good.ok.test", "NXDOMAIN");
  assert.equal(await status(agent, "other.ok.test"), "NXDOMAIN");
  assert.equal(await status(agent, "exact.ok.test"), "NOERROR");
  const found = (await policies()).containers.find(({ container }) => container === "agent");
  assert.match(
    found?.problems[0] ?? "",
    /it has 2 policies, so a name must be allowed by each: agents .* other by label/,
  );
  const { stdout } = await dns11(["doctor", "agent", "--state-dir", instance.stateDir, "-H", engine.host]);
  assert.match(stdout, /it has 2 policies/);
});

test("what dns11 cannot hold: when both of its processes are gone, Docker's resolver answers again", async () => {
  assert.equal(await status(agent, "evil5.ok.test"), "NXDOMAIN");
  const { pid: keeper } = (await instance.status()).keeper;
  instance.kill("SIGKILL");
  await becomes(agent, "evil5.ok.test", "SERVFAIL");
  process.kill(keeper ?? assert.fail("it has none"), "SIGKILL");
  await becomes(agent, "evil5.ok.test", "NOERROR");
  instance = await startDns11(engine, { args: ["--config", file], stateDir: instance.stateDir });
  await becomes(agent, "evil5.ok.test", "NXDOMAIN");
});
