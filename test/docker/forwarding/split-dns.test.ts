// Split DNS, as with a VPN: the first server knows internal names, and the second one denies them or has another address. The first
// one's answer counts, as in Docker's own resolver, however much quicker the second one is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../../src/base/limits.ts";
import { type DigReply, dataOf, digMany } from "../../support/client/dig.ts";
import { type Case, Forwarding } from "./case.ts";

const [INTERNAL, PUBLIC] = ["192.0.2.1", "192.0.2.2"];
// Long enough that a wrong reply would be found in the cache.
const SCENARIO = `
ttl 3600
minimum 3600
name *.vpn.test
server 1: slow 800ms
server 2: nxdomain
name *.both.test
server 1: slow 800ms
server 2: ok
name *
server 1: ok
server 2: nxdomain
`;

const forwarding = new Forwarding();

async function withServers(scenario: string): Promise<Case> {
  const fixture = await forwarding.withServers(2, scenario);
  // A server that answers from its cache in a millisecond is the normal case.
  await answersTo(fixture, (count) => `warm${count}.test`);
  return fixture;
}

async function answersTo({ container }: Case, nameOf: (index: number) => string): Promise<readonly DigReply[]> {
  const names = Array.from({ length: 20 }, (_, index) => [nameOf(index)]);
  return await digMany(container, "127.0.0.11", names);
}

for (const [what, name] of [
  ["denies it", "db.vpn.test"],
  ["has another address", "db.both.test"],
] as const) {
  test(`the first server takes 0.8 s for a name, and the second one ${what} at once: the first one's answer counts`, async () => {
    await using fixture = await withServers(SCENARIO);
    assert.deepEqual(dataOf(await fixture.dig(name)), [INTERNAL]);
    const servers = (await fixture.servers.queriesFor(name)).map(({ server }) => server);
    assert.deepEqual(new Set(servers), new Set([1, 2]), "the second one was asked, too");
    await sleep(3_000);
    assert.deepEqual(dataOf(await fixture.dig(name)), [INTERNAL], "also from the cache");
  });
}

test("what the second server says while the first one is dead is cached briefly, and explain says why", async () => {
  await using fixture = await withServers(SCENARIO);
  await fixture.servers.play(`ttl 3600\nserver 1: silent\nserver 2: ok`);
  const { answer } = await fixture.dig("one.dead.test");
  assert.deepEqual(
    answer.map(({ data, ttl }) => [data, ttl <= LIMITS.lowerReplySeconds]),
    [[PUBLIC, true]],
  );
  const client = forwarding.dns11.client;
  const container = fixture.container.name;
  const { steps } = await client.explain({ container, name: "two.dead.test", type: "A" });
  const texts = steps.flatMap(({ why, events = [] }) => [why, ...events.map((event) => event.what)]).join("\n");
  assert.match(texts, /127\.1\.0\.1\)? is down/);
  assert.match(
    texts,
    new RegExp(`cached for ${LIMITS.lowerReplySeconds} s, as .*127\\.1\\.0\\.1\\)? may answer otherwise`),
  );
});

test("a first server that answers with errors stays the first one", async () => {
  await using fixture = await withServers(
    `name *.vpn.test\nserver 1: ok\nserver 2: nxdomain\nname *\nserver 1: refused\nserver 2: ok`,
  );
  const replies = await answersTo(fixture, (zone) => `host.zone${zone}.test`);
  for (const reply of replies) assert.deepEqual(dataOf(reply), [PUBLIC], reply.raw);
  assert.deepEqual(dataOf(await fixture.dig("db.vpn.test")), [INTERNAL]);
});
