// Proves what is kept of the replies of name servers, for how long, and for whom. Servers count how often they answered,
// and remember every question, so that a reply that was kept is told from one that is fresh.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { type DigReply, dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type ScriptedServers, startScripted } from "../support/scripted/scripted.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import { Asker } from "./differential/asker.ts";
import { TYPE } from "./differential/octets.ts";
import { byUdp, query } from "./differential/question.ts";
import { type Case, LOOPBACKS, startCase } from "./forwarding/case.ts";

const HOST_SERVER = "10.53.0.1";
const OURS = { udp: 53, tcp: 53 };
const FIRST = ["198.18.0.1"];
const SECOND = ["198.18.0.2"];
// As stale answers are marked (RFC 8767).
const STALE_TTL_S = 30;

let engine: Engine;
let dns11: Dns11;
let host: ScriptedServers;

before(async () => {
  engine = await startEngine({ suite: "forky", resolvConf: `nameserver ${HOST_SERVER}\n` });
  await createNetwork(engine, "n1");
  await createNetwork(engine, "dark", { internal: true });
  host = await startScripted(engine, "count", { addresses: [HOST_SERVER] });
  dns11 = await startDns11(engine);
});
after(async () => {
  await dns11[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function withServer(scenario: string): Promise<Case> {
  return await startCase(engine, dns11, { scenario });
}

test("an answer is kept for as long as it says, and says how much of that is left", async () => {
  await using there = await withServer("ttl 10\ncount");
  const first = await there.dig("kept.test");
  const sinceMs = performance.now();
  assert.deepEqual([dataOf(first), first.answer[0]?.ttl], [FIRST, 10]);
  await pause(1_500);
  const second = await there.dig("kept.test");
  assert.deepEqual(dataOf(second), FIRST);
  const ttl = second.answer[0]?.ttl ?? 10;
  assert.ok(ttl <= 9, `${ttl} s of 10 are left after 1.5`);
  assert.deepEqual(dataOf(await there.dig("kept.test", "+tcp")), FIRST, "over TCP");
  assert.equal(await there.timesAsked("kept.test"), 1);
  await waitFor("another answer", async () => {
    const now = dataOf(await there.dig("kept.test"));
    if (isDeepStrictEqual(now, FIRST)) return undefined;
    assert.deepEqual(now, SECOND);
    return true;
  });
  assert.ok(performance.now() - sinceMs > 9_000, "it was kept until then");
});

test("an answer that may not be kept is not kept", async () => {
  await using there = await withServer("ttl 0\ncount");
  assert.deepEqual(dataOf(await there.dig("zero.test")), FIRST);
  assert.deepEqual(dataOf(await there.dig("zero.test")), SECOND);
});

for (const word of ["nxdomain", "nodata"]) {
  test(`${word} is kept for as long as its SOA says, and not at all without one`, async () => {
    const lines = [
      ...["name *.minimum.test", "ttl 60", "minimum 6", word],
      ...["name *.ttl.test", "ttl 6", "minimum 60", word],
      ...["name *.bare.test", `${word}-without-soa`],
    ];
    await using there = await withServer(lines.join("\n"));
    const status = word === "nxdomain" ? "NXDOMAIN" : "NOERROR";
    const ask = async (zone: string): Promise<DigReply> => {
      const reply = await there.dig(`x.${zone}.test`);
      assert.deepEqual([reply.status, reply.answer], [status, []], zone);
      return reply;
    };
    for (const zone of ["minimum", "ttl", "bare"]) await ask(zone);
    for (const zone of ["minimum", "ttl"]) {
      const [soa] = (await ask(zone)).authority;
      assert.ok(soa?.type === "SOA" && soa.ttl <= 6, `${zone}: it may be kept for ${soa?.ttl} s`);
      assert.equal(await there.timesAsked(`x.${zone}.test`), 1, zone);
    }
    await ask("bare");
    assert.equal(await there.timesAsked("x.bare.test"), 2);
    for (const zone of ["minimum", "ttl"]) {
      await waitFor(`${zone} to be asked again`, async () => {
        await ask(zone);
        return (await there.timesAsked(`x.${zone}.test`)) === 2 ? true : undefined;
      });
    }
  });
}

test("the letters of a question come back as they were asked", async () => {
  await using there = await withServer("count");
  for (const name of ["MiXed.Case.test", "mixed.case.test", "MIXED.CASE.TEST"]) {
    const reply = await there.dig(name);
    assert.deepEqual(dataOf(reply), FIRST);
    assert.deepEqual([reply.question?.name, reply.answer[0]?.name], [`${name}.`, `${name}.`]);
  }
  assert.equal(await there.timesAsked("mixed.case.test"), 1);
});

test("signed, unchecked and plain answers to one question are three answers, in whatever order they come", async () => {
  await using there = await withServer("signed");
  // Each with what it asks for beside the question, and what it has to get.
  const plain = [["+noad", "+noedns"], "A 192.0.2.1"] as const;
  const withEdns = [["+noad", "+edns=0"], "A 192.0.2.1"] as const;
  const authentic = [["+ad", "+noedns"], "A 192.0.2.1 ad"] as const;
  const secure = [["+noad", "+dnssec"], "A 192.0.2.1 RRSIG ad"] as const;
  const unchecked = [["+noad", "+cd"], "A 192.0.2.101"] as const;
  const uncheckedSecure = [["+noad", "+cd", "+dnssec"], "A 192.0.2.101 RRSIG"] as const;
  const all = [plain, withEdns, authentic, secure, unchecked, uncheckedSecure];
  for (const [index, order] of [all, all.toReversed(), [...all.slice(3), ...all.slice(0, 3)]].entries()) {
    const name = `order${index}.test`;
    for (const [args, expected] of [...order, ...order]) {
      const reply = await there.dig(name, ...args);
      const told = reply.answer.map(({ type, data }) => (type === "A" ? `A ${data}` : type));
      const got = [...told, ...(reply.flags.has("ad") ? ["ad"] : [])].join(" ");
      assert.equal(got, expected, `${name} ${args.join(" ")}`);
    }
    const times = await there.timesAsked(name);
    assert.ok(times <= 4, `${times} questions about ${name} for four kinds of answers`);
  }
});

test("one answer serves who takes much and who takes little", async () => {
  await using there = await withServer("name *.huge.test\nbig 100\nname *.large.test\nbig 60");
  for (const [zone, count, times] of [
    ["large", 60, 1],
    // By UDP it is cut for everybody, and so fetched by TCP.
    ["huge", 100, 2],
  ] as const) {
    const name = `x.${zone}.test`;
    for (const args of [["+noedns"], ["+bufsize=512"]]) {
      const small = await there.dig(name, "+ignore", ...args);
      assert.deepEqual([small.flags.has("tc"), (small.size ?? 0) <= 512], [true, true], `${zone} ${args.join(" ")}`);
    }
    const big = await there.dig(name, "+ignore", "+bufsize=4096");
    assert.deepEqual([big.flags.has("tc"), big.answer.length], [false, count], zone);
    const whole = await there.dig(name, "+tcp", "+noedns");
    assert.deepEqual([whole.flags.has("tc"), whole.answer.length], [false, count], zone);
    assert.equal(await there.timesAsked(name), times, zone);
  }
});

test("a question that many ask at once is asked once", async () => {
  await using there = await withServer("slow 400ms count");
  using asker = new Asker(there.container.netnsPath);
  const asked = Array.from({ length: 50 }, async (_, index) => {
    const name = index % 2 === 0 ? "crowd.test" : "CROWD.test";
    const type = index % 5 === 0 ? TYPE.AAAA : TYPE.A;
    return await asker.ask(byUdp("", name, query({ name, type })), index + 1, OURS);
  });
  const answers = (await Promise.all(asked)).map(({ replies: [reply = ""] }) => Buffer.from(reply, "hex"));
  for (const [index, reply] of answers.entries()) {
    assert.equal(reply.readUInt16BE(0), index + 1, "the id of each");
    assert.equal(reply.readUInt16BE(6), 1, "an answer for each");
    assert.equal(reply.toString("latin1", 13, 18), index % 2 === 0 ? "crowd" : "CROWD");
  }
  assert.equal(await there.timesAsked("crowd.test"), 2, "one question for each type");
});

for (const how of ["silent", "closed", "servfail"]) {
  test(`an old answer stands in while all servers are ${how}, and is marked as old`, async () => {
    await using there = await withServer("ttl 1\ncount");
    assert.deepEqual(dataOf(await there.dig("old.test")), FIRST);
    await there.servers.play(how);
    await pause(1_500);
    const stale = await there.dig("old.test", "+edns=0", "+time=5");
    assert.deepEqual([stale.status, dataOf(stale)], ["NOERROR", FIRST], stale.raw);
    assert.ok((stale.answer[0]?.ttl ?? 0) <= STALE_TTL_S && (stale.answer[0]?.ttl ?? 0) > 0, stale.raw);
    assert.match(stale.raw, /^; EDE: 3\b/m);
    const plain = await there.dig("old.test", "+noedns", "+time=5");
    assert.deepEqual([dataOf(plain), plain.edns], [FIRST, undefined]);
    assert.equal((await there.dig("never.test", "+time=5")).status, "SERVFAIL", "what was never there is not");
    await there.servers.play("count");
    const fresh = async (): Promise<true | undefined> => {
      const [address] = dataOf(await there.dig("old.test"));
      return address === FIRST[0] ? undefined : true;
    };
    await waitFor("a fresh answer once servers answer", fresh);
  });
}

test("two containers that call their servers by one address never get each other's answers", async () => {
  // One address, and there another server: the first of a scenario, the second of another one.
  const [same, other] = LOOPBACKS;
  const options = { scenario: "slow 100ms", dns: [same] };
  await using one = await startCase(engine, dns11, { ...options, addresses: [same] });
  await using two = await startCase(engine, dns11, { ...options, addresses: [other, same] });
  for (let round = 0; round < 3; round++) {
    for (const name of ["shared.test", `round${round}.test`]) {
      const [first, second] = await Promise.all([one.dig(name), two.dig(name)]);
      assert.deepEqual([dataOf(first), dataOf(second)], [["192.0.2.1"], ["192.0.2.2"]], name);
    }
  }
  assert.deepEqual([await one.timesAsked("shared.test"), await two.timesAsked("shared.test")], [1, 1]);
});

test("what the host's servers said is everybody's who may ask them, and nobody else's", async () => {
  await using first = await runContainer(engine, { name: "first", networks: ["n1"] });
  await using second = await runContainer(engine, { name: "second", networks: ["n1"] });
  await using inside = await runContainer(engine, { name: "inside", networks: ["dark"] });
  for (const name of ["first", "second", "inside"]) await dns11.waitFor(name, "attached");
  assert.deepEqual(dataOf(await dig(first, "hosts.test")), FIRST);
  assert.deepEqual(dataOf(await dig(second, "hosts.test")), FIRST);
  assert.equal((await host.askedFor("hosts.test")).length, 1);
  const refused = async (): Promise<void> => {
    const reply = await dig(inside, "hosts.test");
    assert.deepEqual([reply.status, reply.answer], ["SERVFAIL", []]);
  };
  await refused();
  await inside.connect("n1");
  const comes = async (): Promise<true | undefined> => {
    return dataOf(await dig(inside, "hosts.test")).join() === FIRST.join() ? true : undefined;
  };
  await waitFor("an answer on a network that leads out", comes);
  await inside.disconnect("n1");
  await waitFor("no answer any more", async () => ((await comes()) === undefined ? true : undefined));
  await refused();
  assert.equal((await host.askedFor("hosts.test")).length, 1);
});

test("a container on an internal network keeps what its own server said to itself", async () => {
  await using inner = await startCase(engine, dns11, { scenario: "ok", network: "dark" });
  await using outer = await runContainer(engine, { name: "outer", networks: ["n1"] });
  await dns11.waitFor("outer", "attached");
  assert.deepEqual(dataOf(await inner.dig("mine.test")), ["192.0.2.1"]);
  assert.deepEqual(dataOf(await dig(outer, "mine.test")), FIRST);
  assert.deepEqual(dataOf(await inner.dig("mine.test")), ["192.0.2.1"]);
});
