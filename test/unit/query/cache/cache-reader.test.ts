// Proves what is kept of servers' replies, for whom, and for how long: with a clock that stands still until it is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { Server } from "../../../../src/base/model/view.ts";
import {
  TYPE,
  aName,
  aNetwork,
  aQuery,
  aRecord,
  aReplyTo,
  aView,
  anAsker,
  u16,
  upstreams,
} from "../../../support/scripted/builders.ts";
import { Asking, type AskingParts, askerOf } from "../../support/asking.ts";
import { Clock } from "../../support/clock.ts";
import { dialHere } from "../../support/loopback.ts";
import { UdpUpstream } from "../../support/upstreams.ts";

const DO = 0x8000;

test("a reply is kept as long as its shortest TTL, and its TTLs count down", async () => {
  await using world = new World({ ttls: [60, 30] });
  assert.deepEqual(await world.ttls(), [60, 30]);
  world.pass(29.5);
  assert.deepEqual([await world.ttls(), world.asked], [[31, 1], 1]);
  world.pass(0.6);
  assert.deepEqual([await world.ttls(), world.asked], [[60, 30], 2]);
});

test("a TTL of zero, and one with its highest bit set, is not kept", async () => {
  for (const ttl of [0, 0x80000001]) {
    await using world = new World({ ttls: [ttl] });
    await world.ask();
    await world.ask();
    assert.equal(world.asked, 2);
  }
});

test("floor and ceiling of the settings count for what is kept and what is told", async () => {
  await using world = new World({ ttls: [0, 100_000] }, { cache: { ttlSecondsMin: 10, ttlSecondsMax: 50 } });
  assert.deepEqual(await world.ttls(), [10, 50]);
  world.pass(9);
  assert.deepEqual([await world.ttls(), world.asked], [[1, 41], 1]);
  world.pass(1);
  await world.ask();
  assert.equal(world.asked, 2);
});

for (const rcode of [0, 3]) {
  test(`a denial of code ${rcode} is kept as long as its SOA says, which is told, too`, async () => {
    await using world = new World({ rcode, soa: { ttl: 3600, minimum: 300 } });
    await world.ask();
    world.pass(299);
    const kept = await world.ask();
    assert.deepEqual([kept.rcode, kept.authorities[0]?.ttl, world.asked], [rcode, 1, 1]);
    world.pass(1);
    await world.ask();
    assert.equal(world.asked, 2);
  });

  test(`a denial of code ${rcode} without SOA is not kept, unless settings say so`, async () => {
    await using world = new World({ rcode });
    await world.ask();
    await world.ask();
    assert.equal(world.asked, 2);
    await using kept = new World({ rcode }, { cache: { negativeSecondsWithoutSoa: 5 } });
    await kept.ask();
    await kept.ask();
    assert.equal(kept.asked, 1);
  });

  test(`no denial of code ${rcode} is kept where settings say so`, async () => {
    await using world = new World({ rcode, soa: { ttl: 60, minimum: 60 } }, { cache: { negativeSecondsMax: 0 } });
    await world.ask();
    await world.ask();
    assert.equal(world.asked, 2);
  });
}

test("other letter case is the same name, another type another question", async () => {
  await using world = new World({ ttls: [60] });
  await world.ask({ name: "Example.org" });
  const { question } = await world.ask({ name: "EXAMPLE.org" });
  assert.deepEqual([question?.name, world.asked], ["EXAMPLE.org", 1]);
  await world.ask({ type: TYPE.TXT });
  await world.ask({ name: "example.com" });
  assert.equal(world.asked, 3);
});

test("DO and CD are other questions; each goes upstream with its own", async () => {
  await using world = new World({ ttls: [60] });
  for (const flags of [0x0100, 0x0110]) {
    for (const isDnssecOk of [false, true]) {
      await world.ask({ flags, opt: { isDnssecOk } });
      await world.ask({ flags, opt: { isDnssecOk, udpSize: 4096 } });
    }
  }
  assert.deepEqual(
    world.upstream.queries.map((query) => [query.readUInt16BE(2) & 0x10, query.readUInt16BE(query.length - 4) & DO]),
    [
      [0, 0],
      [0, DO],
      [0x10, 0],
      [0x10, DO],
    ],
  );
});

test("what was verified is told only to those who ask for it, by AD or DO", async () => {
  await using world = new World({ ttls: [60], isAuthentic: true });
  const told = [];
  for (const query of [{}, { flags: 0x0120 }, { opt: {} }, { opt: { isDnssecOk: true } }]) {
    for (let again = 0; again < 2; again++) told.push((await world.ask(query)).flags.includes("ad"));
  }
  assert.deepEqual(told, [false, false, true, true, false, false, true, true]);
});

test("a container's own servers are its own, whatever their address; those of the host are everybody's", async () => {
  await using world = new World({ ttls: [60] });
  await world.ask({}, askerOf(world.upstream.server));
  await world.ask({}, askerOf(world.upstream.server));
  assert.equal(world.asked, 2);
  const host: Server = { ...world.upstream.server, from: "host" };
  await world.ask({}, askerOf(host));
  await world.ask({}, askerOf(host));
  assert.equal(world.asked, 3);
  await world.ask({}, askerOf(host, world.upstream.server));
  assert.equal(world.asked, 4);
  assert.equal((await world.ask({}, askerOf())).rcode, 2);
});

test("when servers fail, what is over stands in, marked; when they are back, it is theirs again", async () => {
  await using world = new World({ ttls: [60] });
  await world.ask();
  world.says = { rcode: 2 };
  world.pass(61);
  const stale = await world.ask({ opt: {} });
  assert.deepEqual([stale.rcode, stale.answers[0]?.ttl], [0, 30]);
  assert.equal(stale.additionals[0]?.data.readUInt16BE(4), 3);
  const asked = world.asked;
  assert.equal((await world.ask()).answers[0]?.ttl, 30);
  assert.equal(world.asked, asked);
  world.says = { ttls: [60] };
  world.pass(6);
  assert.equal((await world.ask()).answers[0]?.ttl, 30);
  await world.upstream.asked(asked + 1);
  await settled();
  assert.equal((await world.ask()).answers[0]?.ttl, 60);
});

test("while servers are silent, whoever comes later gets what is over at once", async () => {
  using clock = new Clock();
  let isSilent = false;
  const record = aRecord({ owner: aName("example.org"), type: TYPE.A, ttl: 60, data: Buffer.alloc(4) });
  await using upstream = new UdpUpstream((query, reply) => void (isSilent || reply(aReplyTo(query, 0, [record]))));
  const asking = new Asking({ now: clock.now });
  const client = askerOf(upstream.server);
  const query = aQuery({ name: "example.org" });
  assert.equal((await asking.ask(client, query)).answers[0]?.ttl, 60);
  isSilent = true;
  clock.advance(61_000);
  const first = asking.ask(client, query);
  const early = asking.ask(client, query);
  await upstream.asked(2);
  clock.advance(LIMITS.staleAfterMs + 10);
  for (const reply of [await first, await early]) assert.equal(reply.answers[0]?.ttl, LIMITS.staleTtlSeconds);
  // Nobody of them waits: the clock stands still while they ask.
  for (const laterMs of [100, 900, 1_500, 1_500]) {
    clock.advance(laterMs);
    assert.equal((await asking.ask(client, query)).answers[0]?.ttl, LIMITS.staleTtlSeconds);
  }
  isSilent = false;
  const asked = upstream.queries.length;
  clock.advance(LIMITS.failureTimeoutMs);
  await asking.ask(client, query);
  await upstream.asked(asked + 1);
  let ttl: number | undefined;
  // The clock stands still, and with it every timer; the reply comes in some round of the event loop.
  while (ttl !== 60) {
    await nextRound();
    ttl = (await asking.ask(client, query)).answers[0]?.ttl;
  }
});

test("what is over does not stand in any more when servers answer again, also with what is not to be kept", async () => {
  await using world = new World({ ttls: [60] });
  await world.ask();
  world.says = { rcode: 2 };
  world.pass(61);
  assert.equal((await world.ask()).answers[0]?.ttl, 30);
  world.says = { ttls: [0] };
  world.pass(6);
  // The one that is given at once has it asked for anew.
  await world.ask();
  await world.upstream.asked(world.asked);
  await settled();
  for (let count = 0; count < 2; count++) assert.equal((await world.ask()).answers[0]?.ttl, 0);
});

test("what has been over for too long does not stand in, nor does anything where settings say so", async () => {
  for (const parts of [{ cache: { staleSecondsMax: 100 } }, { behaviour: { servesStale: false } }]) {
    await using world = new World({ ttls: [60] }, parts);
    await world.ask();
    world.says = { rcode: 2 };
    world.pass(161);
    assert.equal((await world.ask()).rcode, 2);
  }
});

test("a failure is remembered for a moment, and says that it is", async () => {
  await using world = new World({ rcode: 2 });
  await world.ask();
  const again = await world.ask({ opt: {} });
  assert.deepEqual([again.rcode, world.asked], [2, 1]);
  assert.match(again.additionals[0]?.data.toString() ?? "", /SERVFAIL/);
  world.pass(5.1);
  await world.ask();
  assert.equal(world.asked, 2);
});

test("what is asked for often is asked anew before it is over", async () => {
  await using world = new World({ ttls: [100] });
  await world.ask();
  world.pass(89);
  for (let i = 0; i < 3; i++) await world.ask();
  assert.equal(world.asked, 1);
  world.pass(2);
  for (let i = 0; i < 3; i++) await world.ask();
  await world.upstream.asked(2);
  await settled();
  assert.deepEqual([await world.ttls(), world.asked], [[100], 2]);
});

test("a name that we hold is not denied, neither by a server nor from memory", async () => {
  await using world = new World({ rcode: 3, soa: { ttl: 60, minimum: 60 } });
  const network = aNetwork({ members: [{ names: ["mail.example.org"], ipv4: "172.20.0.2" }] });
  const holder = anAsker(
    aView([network], upstreams({ servers: [{ ...world.upstream.server, from: "host" }] })),
    dialHere,
  );
  const stranger = askerOf({ ...world.upstream.server, from: "host" });
  const query = { name: "mail.example.org", type: TYPE.TXT };
  const rcodes = [];
  for (const client of [holder, holder, stranger]) rcodes.push((await world.ask(query, client)).rcode);
  assert.deepEqual([rcodes, world.asked], [[0, 0, 3], 1]);
});

test("what was on its way when everything was forgotten is answered and not kept, and nobody joins it", async () => {
  const late: (() => void)[] = [];
  await using upstream = new UdpUpstream((query, reply) => late.push(() => reply(aReplyTo(query, 3))));
  const asking = new Asking();
  const client = askerOf({ ...upstream.server, from: "host" });
  const before = asking.ask(client, aQuery());
  await upstream.asked(1);
  asking.forwarder.invalidate();
  const after = asking.ask(client, aQuery());
  await upstream.asked(2);
  for (const say of late) say();
  assert.deepEqual([(await before).rcode, (await after).rcode, asking.cache.size], [3, 3, 0]);
});

async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
}

type Says = {
  readonly rcode?: number;
  readonly ttls?: readonly number[];
  readonly soa?: { readonly ttl: number; readonly minimum: number };
  readonly isAuthentic?: boolean;
};

// A server that says the same to every question, whoever asks it, and the time.
class World implements AsyncDisposable {
  says: Says;
  readonly upstream: UdpUpstream;
  readonly #asking: Asking;
  readonly #client;
  #nowMs = 0;

  constructor(says: Says, parts: AskingParts = {}) {
    this.says = says;
    this.upstream = new UdpUpstream((query, reply) => reply(this.#reply(query)));
    this.#client = askerOf(this.upstream.server);
    this.#asking = new Asking({ ...parts, now: () => this.#nowMs });
  }

  get asked(): number {
    return this.upstream.queries.length;
  }

  pass(seconds: number): void {
    this.#nowMs += seconds * 1000;
  }

  async ask(query: Parameters<typeof aQuery>[0] = {}, client = this.#client): ReturnType<Asking["ask"]> {
    return await this.#asking.ask(client, aQuery({ name: "example.org", ...query }));
  }

  async ttls(): Promise<number[]> {
    return (await this.ask()).answers.map(({ ttl }) => ttl);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.upstream[Symbol.asyncDispose]();
  }

  #reply(query: Buffer): Buffer {
    const { rcode = 0, ttls = [], soa, isAuthentic = false } = this.says;
    const answers = ttls.map((ttl) =>
      aRecord({ owner: Buffer.of(0xc0, 12), type: query.readUInt16BE(query.indexOf(0, 12) + 1), ttl, data: DATA }),
    );
    const data = soa && Buffer.concat([aName("ns"), aName("admin"), ...[1, 2, 3, 4, soa.minimum].map(u32)]);
    const authorities =
      soa === undefined ? [] : [aRecord({ owner: "org", type: 6, ttl: soa.ttl, data: data as Buffer })];
    const message = Buffer.concat([aReplyTo(query, rcode, answers), ...authorities]);
    message.set(u16(authorities.length), 8);
    if (isAuthentic) message[3] = (message[3] ?? 0) | 0x20;
    return message;
  }
}

// An address, and a text of three octets.
const DATA = Buffer.of(3, 0x61, 0x62, 0x63);

function u32(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value);
  return octets;
}
