// Proves that names go on resolving while name servers fail, in every way they do: under load, within what a C library
// waits, and without believing whoever answers in their place. Each test has a container and servers of its own, for what
// was heard of a server is remembered.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startScripted } from "../support/scripted/scripted.ts";
import { failuresOf, readableStorm, storm } from "../support/scripted/storm.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import { type Case, LOOPBACKS, startCase } from "./forwarding/case.ts";

// The C library asks again after five seconds, and programs give up.
const CLIENT_MS = 5_000;
// How long names take then is a row of the bench.
const STORM = { count: 2_000, atOnce: 200 };
const FLAPPING = { perSecond: 200, forMs: 12_000 };

let engine: Engine;
let dns11: Dns11;
// Left to Docker, to see what it makes of the same.
let left: Container;

before(async () => {
  engine = await startEngine({ suite: "forky" });
  await createNetwork(engine, "n1");
  const labels = { "io.dns11.enable": "false" };
  left = await runContainer(engine, { networks: ["n1"], dns: LOOPBACKS.slice(0, 2), labels });
  dns11 = await startDns11(engine);
});
after(async () => {
  await dns11[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function withServers(count: number, scenario: string): Promise<Case> {
  return await startCase(engine, dns11, { scenario, addresses: LOOPBACKS.slice(0, count) });
}

for (const how of ["silent", "closed"]) {
  test(`the first of two servers is ${how}: every name resolves, and soon few wait for it`, async (context) => {
    const scenario = `server 1: ${how}\nserver 2: ok`;
    await using there = await withServers(2, scenario);
    const report = await there.storm("dead.test", STORM.count, STORM.atOnce);
    context.diagnostic(`dns11: ${readableStorm(report)}`);
    assert.equal(failuresOf(report, "192.0.2.2"), "");
    let storms = 0;
    await waitFor("the first server to be asked no more than now and then", async () => {
      await there.servers.forget();
      const later = await there.storm(`later${(storms += 1)}.test`, STORM.atOnce, 20);
      assert.equal(failuresOf(later, "192.0.2.2"), "");
      const vain = (await there.servers.asked()).filter(({ server }) => server === 1);
      return vain.length < STORM.atOnce / 4 ? true : undefined;
    });
    await using _servers = await startScripted(left, scenario, { addresses: LOOPBACKS.slice(0, 2) });
    const beside = await storm(left, { suffix: "dead.test", load: { ...STORM, count: 200 } });
    context.diagnostic(`dockerd: ${readableStorm(beside)}`);
  });
}

test("one of three servers is alive and the others flap: no SERVFAIL, no silence", async (context) => {
  await using there = await withServers(3, "flapping.scn");
  const report = await storm(there.container, { suffix: "flap.test", load: FLAPPING });
  context.diagnostic(`dns11: ${readableStorm(report)}`);
  assert.equal(failuresOf(report, "192.0.2.3"), "");
  assert.equal(report.sent, (FLAPPING.perSecond * FLAPPING.forMs) / 1_000);
});

test("a server that comes back is asked again, when the other one dies", async () => {
  await using there = await withServers(2, "server 1: silent\nserver 2: ok");
  assert.equal(failuresOf(await there.storm("gone.test", 400, 50), "192.0.2.2"), "");
  await there.servers.play("server 1: ok\nserver 2: silent");
  const report = await there.storm("back.test", 400, 50);
  assert.equal(failuresOf(report, "192.0.2.1"), "", readableStorm(report));
});

test("a flood of forged replies is survived: the right one is fetched over TCP", async () => {
  await using there = await withServers(1, "spoof 500");
  assert.deepEqual(dataOf(await there.dig("flooded.test", "+time=5")), ["192.0.2.1"]);
  const asked = await there.servers.askedFor("flooded.test");
  assert.equal(asked.at(-1)?.transport, "tcp");
});

for (const how of ["wrong-id", "wrong-source", "wrong-question"]) {
  test(`a lie with ${how} is not believed, and the truth is found`, async () => {
    await using there = await withServers(2, `server 1: ${how}\nserver 2: slow 500ms`);
    const [address] = dataOf(await there.dig("lies.test", "+time=5"));
    assert.ok(address === "192.0.2.1" || address === "192.0.2.2", `it was ${address}`);
  });
}

for (const [how, address] of [
  ["garbage", "192.0.2.2"],
  ["slow 6s", "192.0.2.2"],
  ["midway", "192.0.2.2"],
  ["servfail", "192.0.2.2"],
  ["refused", "192.0.2.2"],
  ["truncated", "192.0.2.1"],
  ["formerr-to-edns", "192.0.2.1"],
] as const) {
  test(`the first server is ${how}: the right answer comes, whole and in time`, async () => {
    await using there = await withServers(2, `server 1: ${how}\nserver 2: ok`);
    const reply = await there.dig("first.test", "+time=5", "+ignore");
    assert.deepEqual(dataOf(reply), [address]);
    assert.equal(reply.flags.has("tc"), false);
  });
}

test("an answer that comes too late goes to nobody else", async () => {
  await using there = await withServers(1, "name late.test\nslow 2500ms\nname *\nok");
  assert.equal((await there.dig("late.test", "+time=1")).timedOut, true);
  for (let index = 0; index < 60; index++) {
    assert.deepEqual(dataOf(await there.dig(`prompt${index}.test`)), ["192.0.2.1"]);
    await pause(20);
  }
});

test("an oversized answer is whole for who takes it, and truncated for who does not", async () => {
  await using there = await withServers(1, "oversized 60");
  assert.equal((await there.dig("large.test", "+bufsize=1232")).answer.length, 60);
  const small = await there.dig("small.test", "+noedns", "+ignore");
  assert.deepEqual([small.flags.has("tc"), (small.size ?? 0) <= 512], [true, true]);
  const again = await there.dig("small.test", "+noedns");
  assert.deepEqual([again.tcp, again.answer.length], [true, 60]);
});

test("all servers are dead, in whatever way: whoever asks hears so before giving up", async () => {
  const died = async (how: string): Promise<void> => {
    await using there = await withServers(2, how);
    const reply = await there.dig("nobody.test", "+time=20");
    assert.equal(reply.status, "SERVFAIL", `${how}: ${reply.raw}`);
  };
  assert.ok(LIMITS.forwardWaitMs < CLIENT_MS);
  await Promise.all(["silent", "slow 6s", "closed", "servfail", "garbage", "midway", "wrong-source"].map(died));
});
