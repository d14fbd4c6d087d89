// Failover: names keep resolving while nameservers fail in every way: under load, within the timeout of a C library, and
// without accepting forged replies. Each test has its own container and servers, because dns11 keeps the health of a server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { dataOf, digMany } from "../support/client/dig.ts";
import { failuresOf, readableStorm, storm } from "../support/scripted/storm.ts";
import { waitFor } from "../support/rig/wait.ts";
import { Forwarding } from "./forwarding/case.ts";

// The C library retries after five seconds, and programs give up.
const CLIENT_MS = 5_000;
// Later than a client that waits for a second, and before dns11 gives up.
const LATE_MS = 3_500;
// The benchmark measures the latency, and has more.
const STORM = { count: 600, atOnce: 60 };
// Two rounds of the scenario.
const FLAPPING = { perSecond: 100, forMs: 9_000 };

const forwarding = new Forwarding();

for (const how of ["silent", "closed"]) {
  test(`the first of two servers is ${how}: every name resolves, and soon few queries wait for it`, async (context) => {
    const scenario = `server 1: ${how}\nserver 2: ok`;
    await using fixture = await forwarding.withServers(2, scenario);
    const report = await fixture.storm("dead.test", STORM.count, STORM.atOnce);
    context.diagnostic(`dns11: ${readableStorm(report)}`);
    assert.equal(failuresOf(report, "192.0.2.2"), "");
    let storms = 0;
    await waitFor("few queries to the first server", async () => {
      await fixture.servers.forget();
      const later = await fixture.storm(`later${(storms += 1)}.test`, 100, 20);
      assert.equal(failuresOf(later, "192.0.2.2"), "");
      const toFirst = (await fixture.servers.queries()).filter(({ server }) => server === 1);
      return toFirst.length < 100 / 4 ? true : undefined;
    });
  });
}

test("one of three servers is up and the others flap: every query is answered, none with SERVFAIL", async (context) => {
  await using fixture = await forwarding.withServers(3, "flapping.scn");
  const report = await storm(fixture.container, { suffix: "flap.test", load: FLAPPING });
  context.diagnostic(`dns11: ${readableStorm(report)}`);
  assert.equal(failuresOf(report, "192.0.2.3"), "");
  assert.equal(report.sent, (FLAPPING.perSecond * FLAPPING.forMs) / 1_000);
});

test("a recovered server is used again when the other one fails", async () => {
  await using fixture = await forwarding.withServers(2, "server 1: silent\nserver 2: ok");
  assert.equal(failuresOf(await fixture.storm("gone.test", 200, 50), "192.0.2.2"), "");
  await fixture.servers.play("server 1: ok\nserver 2: silent");
  const report = await fixture.storm("back.test", 200, 50);
  assert.equal(failuresOf(report, "192.0.2.1"), "", readableStorm(report));
});

test("during a flood of forged replies, the answer is fetched over TCP", async () => {
  await using fixture = await forwarding.withServers(1, "spoof 500");
  assert.deepEqual(dataOf(await fixture.dig("flooded.test")), ["192.0.2.1"]);
  const queries = await fixture.servers.queriesFor("flooded.test");
  assert.ok(queries.some(({ transport }) => transport === "tcp"));
});

for (const how of ["wrong-id", "wrong-source", "wrong-question"]) {
  test(`a forged reply with ${how} is ignored, and a valid answer arrives`, async () => {
    await using fixture = await forwarding.withServers(2, `server 1: ${how}\nserver 2: slow 500ms`);
    const [address] = dataOf(await fixture.dig("lies.test"));
    assert.ok(address === "192.0.2.1" || address === "192.0.2.2", `got ${address}`);
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
  test(`the first server is ${how}: the right answer arrives, complete and in time`, async () => {
    await using fixture = await forwarding.withServers(2, `server 1: ${how}\nserver 2: ok`);
    let tries = 0;
    // The second server is asked when the first one is late, as it may be on a busy machine.
    await waitFor(`an answer of ${address}`, async () => {
      const reply = await fixture.dig(`first${(tries += 1)}.test`, "+ignore");
      assert.equal(reply.status, "NOERROR", reply.raw);
      assert.equal(reply.flags.has("tc"), false);
      return dataOf(reply).join() === address ? true : undefined;
    });
  });
}

test("a late reply is never delivered for another query", async () => {
  await using fixture = await forwarding.withServers(1, `name late.test\nslow ${LATE_MS}ms\nname *\nok`);
  assert.equal((await fixture.dig("late.test", "+time=1")).timedOut, true);
  const startMs = performance.now();
  // Until it has been sent.
  for (let round = 0; performance.now() - startMs < LATE_MS; round++) {
    const names = Array.from({ length: 10 }, (_, index) => [`prompt${index}.round${round}.test`]);
    for (const reply of await digMany(fixture.container, "127.0.0.11", names))
      assert.deepEqual(dataOf(reply), ["192.0.2.1"]);
  }
});

test("a large answer is complete for clients with a large UDP size, and truncated for others", async () => {
  await using fixture = await forwarding.withServers(1, "oversized 60");
  assert.equal((await fixture.dig("large.test", "+bufsize=1232")).answer.length, 60);
  const small = await fixture.dig("small.test", "+noedns", "+ignore");
  assert.deepEqual([small.flags.has("tc"), (small.size ?? 0) <= 512], [true, true]);
  const again = await fixture.dig("small.test", "+noedns");
  assert.deepEqual([again.tcp, again.answer.length], [true, 60]);
});

test("if all servers fail, in any way, the client gets SERVFAIL before it gives up", async () => {
  const died = async (how: string): Promise<void> => {
    await using fixture = await forwarding.withServers(2, how);
    const reply = await fixture.dig("nobody.test");
    assert.equal(reply.status, "SERVFAIL", `${how}: ${reply.raw}`);
  };
  assert.ok(LIMITS.forwardWaitMs < CLIENT_MS);
  await Promise.all(["silent", "slow 6s", "closed", "servfail", "garbage", "midway", "wrong-source"].map(died));
});
