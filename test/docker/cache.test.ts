// The reply cache: which replies are cached, for how long, and for which containers. The servers put a counter in their
// answers and record every query, so a cached reply differs from a new one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { LIMITS } from "../../src/base/limits.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { type DigReply, dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type ScriptedServers, startScripted } from "../support/scripted/scripted.ts";
import { WAIT_TIMEOUT_MS, pause, waitFor } from "../support/rig/wait.ts";
import { ResolverClient } from "./differential/client.ts";
import { TYPE } from "./differential/octets.ts";
import { byUdp, query } from "./differential/question.ts";
import { type Case, LOOPBACKS, startCase } from "./forwarding/case.ts";

const HOST_SERVER = "10.53.0.1";
const OURS = { udp: 53, tcp: 53 };
const FIRST = ["198.18.0.1"];
// Longer than any test takes: only those that wait for the end of a TTL have a short one.
const LASTING = "ttl 600\n";
// The TTL of stale answers (RFC 8767).
const STALE_TTL_S = 30;

let engine: Engine;
let dns11: Dns11;
let host: ScriptedServers;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${HOST_SERVER}\n` });
  await createNetwork(engine, "n1");
  await createNetwork(engine, "dark", { internal: true });
  host = await startScripted(engine, LASTING + "count", { addresses: [HOST_SERVER] });
  dns11 = await startDns11(engine);
});
after(async () => {
  await dns11[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function withServer(scenario: string): Promise<Case> {
  return await startCase(engine, dns11, { scenario: LASTING + scenario });
}

test("a cached answer is repeated, also over TCP, and its TTL counts down", async () => {
  await using fixture = await withServer("count");
  const first = await fixture.dig("kept.test");
  assert.deepEqual([dataOf(first), first.answer[0]?.ttl], [FIRST, 600]);
  const times = await fixture.timesQueried("kept.test");
  await waitFor("a lower TTL", async () => {
    const next = await fixture.dig("kept.test");
    assert.deepEqual(dataOf(next), FIRST);
    return (next.answer[0]?.ttl ?? 600) < 600 ? true : undefined;
  });
  assert.deepEqual(dataOf(await fixture.dig("kept.test", "+tcp")), FIRST, "over TCP");
  assert.equal(await fixture.timesQueried("kept.test"), times);
});

test("an answer is cached for its whole TTL, and no longer", async () => {
  await using fixture = await withServer("ttl 3\ncount");
  const startMs = performance.now();
  assert.deepEqual(dataOf(await fixture.dig("short.test")), FIRST);
  await waitFor("a new answer", async () =>
    isDeepStrictEqual(dataOf(await fixture.dig("short.test")), FIRST) ? undefined : true,
  );
  // The answer is cached after the clock of this test starts, so a slow machine only makes the time longer.
  assert.ok(performance.now() - startMs > 2_000, "it was cached until then");
});

test("an answer with TTL 0 is not cached", async () => {
  await using fixture = await withServer("ttl 0\ncount");
  const first = dataOf(await fixture.dig("zero.test"));
  assert.notDeepEqual(dataOf(await fixture.dig("zero.test")), first);
});

for (const word of ["nxdomain", "nodata"]) {
  test(`${word} is cached for the time in its SOA, and not without an SOA`, async () => {
    const lines = [
      ...["name *.minimum.test", "ttl 600", "minimum 2", word],
      ...["name *.ttl.test", "ttl 2", "minimum 600", word],
      ...["name *.both.test", "ttl 600", "minimum 600", word],
      ...["name *.bare.test", `${word}-without-soa`],
    ];
    await using fixture = await withServer(lines.join("\n"));
    const status = word === "nxdomain" ? "NXDOMAIN" : "NOERROR";
    const lookUp = async (zone: string): Promise<DigReply> => {
      const reply = await fixture.dig(`x.${zone}.test`);
      assert.deepEqual([reply.status, reply.answer], [status, []], zone);
      return reply;
    };
    const timesMore = async (zone: string): Promise<number> => {
      await lookUp(zone);
      const times = await fixture.timesQueried(`x.${zone}.test`);
      await lookUp(zone);
      return (await fixture.timesQueried(`x.${zone}.test`)) - times;
    };
    assert.equal(await timesMore("both"), 0);
    assert.notEqual(await timesMore("bare"), 0);
    for (const zone of ["minimum", "ttl"]) {
      const [soa] = (await lookUp(zone)).authority;
      assert.ok(soa?.type === "SOA" && soa.ttl <= 2, `${zone}: SOA TTL ${soa?.ttl} s`);
      const times = await fixture.timesQueried(`x.${zone}.test`);
      await waitFor(`another query for ${zone}`, async () => {
        await lookUp(zone);
        return (await fixture.timesQueried(`x.${zone}.test`)) > times ? true : undefined;
      });
    }
  });
}

test("the reply has the letter case of the question, also from the cache", async () => {
  await using fixture = await withServer("count");
  for (const name of ["MiXed.Case.test", "mixed.case.test", "MIXED.CASE.TEST"]) {
    const reply = await fixture.dig(name);
    // Another query would have another answer.
    assert.deepEqual(dataOf(reply), FIRST);
    assert.deepEqual([reply.question?.name, reply.answer[0]?.name], [`${name}.`, `${name}.`]);
  }
});

test("of several addresses in a cached answer another one is the first each time", async () => {
  await using fixture = await withServer("big 4");
  const all = dataOf(await fixture.dig("several.test")).toSorted();
  assert.equal(all.length, 4);
  const first = new Set<string | undefined>();
  await waitFor("each address as the first one", async () => {
    const given = dataOf(await fixture.dig("several.test"));
    assert.deepEqual(given.toSorted(), all);
    first.add(given[0]);
    return first.size === 4 ? true : undefined;
  });
  assert.equal(await fixture.timesQueried("several.test"), 1);
});

test("signed, unchecked and plain answers to one question are cached separately, in any order", async () => {
  await using fixture = await withServer("signed");
  // Each with its flags and options, and the expected answer.
  const plain = [["+noad", "+noedns"], "A 192.0.2.1"] as const;
  const withEdns = [["+noad", "+edns=0"], "A 192.0.2.1"] as const;
  const authentic = [["+ad", "+noedns"], "A 192.0.2.1 ad"] as const;
  const secure = [["+noad", "+dnssec"], "A 192.0.2.1 RRSIG ad"] as const;
  const unchecked = [["+noad", "+cd"], "A 192.0.2.101"] as const;
  const uncheckedSecure = [["+noad", "+cd", "+dnssec"], "A 192.0.2.101 RRSIG"] as const;
  const all = [plain, withEdns, authentic, secure, unchecked, uncheckedSecure];
  for (const [index, order] of [all, all.toReversed(), [...all.slice(3), ...all.slice(0, 3)]].entries()) {
    const name = `order${index}.test`;
    // How often a question was not answered from the cache: a busy machine may send one again.
    let [misses, times] = [0, 0];
    for (const [args, expected] of [...order, ...order]) {
      const reply = await fixture.dig(name, ...args);
      const timesNow = await fixture.timesQueried(name);
      if (timesNow > times) misses++;
      times = timesNow;
      const records = reply.answer.map(({ type, data }) => (type === "A" ? `A ${data}` : type));
      const got = [...records, ...(reply.flags.has("ad") ? ["ad"] : [])].join(" ");
      assert.equal(got, expected, `${name} ${args.join(" ")}`);
    }
    // The answer to a query with AD serves those without, but not the other way round.
    assert.ok(misses <= 5, `${misses} misses for ${name}, for five kinds of queries`);
  }
});

test("one cache entry serves clients with any UDP size and over TCP", async () => {
  await using fixture = await withServer("name *.huge.test\nbig 100\nname *.large.test\nbig 60");
  for (const [zone, count, isFetchedOverTcp] of [
    ["large", 60, false],
    // Over UDP it is always truncated.
    ["huge", 100, true],
  ] as const) {
    const name = `x.${zone}.test`;
    assert.equal((await fixture.dig(name, "+ignore", "+bufsize=1232")).status, "NOERROR");
    const asked = await fixture.servers.queriesFor(name);
    assert.equal(
      asked.some(({ transport }) => transport === "tcp"),
      isFetchedOverTcp,
      zone,
    );
    for (const args of [["+noedns"], ["+bufsize=512"]]) {
      const small = await fixture.dig(name, "+ignore", ...args);
      assert.deepEqual([small.flags.has("tc"), (small.size ?? 0) <= 512], [true, true], `${zone} ${args.join(" ")}`);
    }
    const big = await fixture.dig(name, "+ignore", "+bufsize=4096");
    assert.deepEqual([big.flags.has("tc"), big.answer.length], [false, count], zone);
    const whole = await fixture.dig(name, "+tcp", "+noedns");
    assert.deepEqual([whole.flags.has("tc"), whole.answer.length], [false, count], zone);
    assert.equal(await fixture.timesQueried(name), asked.length, zone);
  }
});

test("concurrent queries for one question are coalesced into one upstream query", async () => {
  await using fixture = await withServer("slow 400ms count");
  using client = new ResolverClient(fixture.container.netnsPath);
  const queries = Array.from({ length: 50 }, async (_, index) => {
    const name = index % 2 === 0 ? "crowd.test" : "CROWD.test";
    const type = index % 5 === 0 ? TYPE.AAAA : TYPE.A;
    return await client.query(byUdp("", name, query({ name, type }), WAIT_TIMEOUT_MS), index + 1, OURS);
  });
  const answers = (await Promise.all(queries)).map(({ replies: [reply = ""] }) => Buffer.from(reply, "hex"));
  for (const [index, reply] of answers.entries()) {
    assert.equal(reply.readUInt16BE(0), index + 1, "each reply has the id of its query");
    assert.equal(reply.readUInt16BE(6), 1, "each reply has an answer");
    assert.equal(reply.toString("latin1", 13, 18), index % 2 === 0 ? "crowd" : "CROWD");
  }
  // One for each type, and what was sent again because a busy machine answered late.
  const times = await fixture.timesQueried("crowd.test");
  assert.ok(times >= 2 && times <= 2 * LIMITS.upstreamAttemptsPerServer, `${times} upstream queries`);
});

for (const how of ["silent", "closed", "servfail"]) {
  test(`while all servers are ${how}, a stale answer is served and marked as stale`, async () => {
    await using fixture = await withServer("ttl 1\ncount");
    assert.deepEqual(dataOf(await fixture.dig("old.test")), FIRST);
    await fixture.servers.play(how);
    await pause(1_500);
    const stale = await fixture.dig("old.test", "+edns=0");
    assert.deepEqual([stale.status, dataOf(stale)], ["NOERROR", FIRST], stale.raw);
    assert.ok((stale.answer[0]?.ttl ?? 0) <= STALE_TTL_S && (stale.answer[0]?.ttl ?? 0) > 0, stale.raw);
    assert.match(stale.raw, /^; EDE: 3\b/m);
    const plain = await fixture.dig("old.test", "+noedns");
    assert.deepEqual([dataOf(plain), plain.edns], [FIRST, undefined]);
    assert.equal((await fixture.dig("never.test")).status, "SERVFAIL", "a name that was never cached fails");
    await fixture.servers.play("count");
    const fresh = async (): Promise<true | undefined> => {
      const [address] = dataOf(await fixture.dig("old.test"));
      return address === FIRST[0] ? undefined : true;
    };
    await waitFor("a fresh answer after the servers recovered", fresh);
  });
}

test("two containers with different servers at the same address never share cache entries", async () => {
  // The same address is server 1 in one container and server 2 in the other.
  const [same, other] = LOOPBACKS;
  const options = { scenario: `${LASTING}slow 100ms`, dns: [same] };
  await using one = await startCase(engine, dns11, { ...options, addresses: [same] });
  await using two = await startCase(engine, dns11, { ...options, addresses: [other, same] });
  for (let round = 0; round < 3; round++) {
    for (const name of ["shared.test", `round${round}.test`]) {
      const [first, second] = await Promise.all([one.dig(name), two.dig(name)]);
      assert.deepEqual([dataOf(first), dataOf(second)], [["192.0.2.1"], ["192.0.2.2"]], name);
    }
  }
  for (const each of [one, two]) {
    const times = await each.timesQueried("shared.test");
    await each.dig("shared.test");
    assert.equal(await each.timesQueried("shared.test"), times, "it is cached");
  }
});

test("replies of the host's servers are shared by all containers that may query them, and by no others", async () => {
  await using first = await runContainer(engine, { name: "first", networks: ["n1"] });
  await using second = await runContainer(engine, { name: "second", networks: ["n1"] });
  await using inside = await runContainer(engine, { name: "inside", networks: ["dark"] });
  for (const name of ["first", "second", "inside"]) await dns11.waitFor(name, "attached");
  assert.deepEqual(dataOf(await dig(first, "hosts.test")), FIRST);
  const { length: times } = await host.queriesFor("hosts.test");
  assert.deepEqual(dataOf(await dig(second, "hosts.test")), FIRST);
  const refused = async (): Promise<void> => {
    const reply = await dig(inside, "hosts.test");
    assert.deepEqual([reply.status, reply.answer], ["SERVFAIL", []]);
  };
  await refused();
  await inside.connect("n1");
  const answered = async (): Promise<true | undefined> => {
    return dataOf(await dig(inside, "hosts.test")).join() === FIRST.join() ? true : undefined;
  };
  await waitFor("an answer on an external network", answered);
  await inside.disconnect("n1");
  await waitFor("no answer any more", async () => ((await answered()) === undefined ? true : undefined));
  await refused();
  assert.equal((await host.queriesFor("hosts.test")).length, times);
});

test("replies of a container's own server on an internal network are not shared", async () => {
  await using inner = await startCase(engine, dns11, { scenario: "ok", network: "dark" });
  await using outer = await runContainer(engine, { name: "outer", networks: ["n1"] });
  await dns11.waitFor("outer", "attached");
  assert.deepEqual(dataOf(await inner.dig("mine.test")), ["192.0.2.1"]);
  assert.deepEqual(dataOf(await dig(outer, "mine.test")), FIRST);
  assert.deepEqual(dataOf(await inner.dig("mine.test")), ["192.0.2.1"]);
});
