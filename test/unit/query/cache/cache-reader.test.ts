// Proves what is cached of upstream replies, for which containers, and for how long, with a clock that the test
// controls.

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
  aClient,
  u16,
  upstreams,
} from "../../../support/scripted/builders.ts";
import { QueryPath, type QueryPathParts, clientOf } from "../../support/query-path.ts";
import { Clock } from "../../support/clock.ts";
import { dialHere } from "../../support/loopback.ts";
import { UdpUpstream } from "../../support/upstreams.ts";

const DO = 0x8000;

test("a reply is cached for its shortest TTL, and its TTLs count down", async () => {
  await using world = new World({ ttls: [60, 30] });
  assert.deepEqual(await world.ttls(), [60, 30]);
  world.pass(29.5);
  assert.deepEqual([await world.ttls(), world.received], [[31, 1], 1]);
  world.pass(0.6);
  assert.deepEqual([await world.ttls(), world.received], [[60, 30], 2]);
});

test("a TTL of zero, and one with its highest bit set, is not cached", async () => {
  for (const ttl of [0, 0x80000001]) {
    await using world = new World({ ttls: [ttl] });
    await world.query();
    await world.query();
    assert.equal(world.received, 2);
  }
});

test("the configured minimum and maximum apply to the lifetime and to the TTLs in answers", async () => {
  await using world = new World({ ttls: [0, 100_000] }, { cache: { ttlSecondsMin: 10, ttlSecondsMax: 50 } });
  assert.deepEqual(await world.ttls(), [10, 50]);
  world.pass(9);
  assert.deepEqual([await world.ttls(), world.received], [[1, 41], 1]);
  world.pass(1);
  await world.query();
  assert.equal(world.received, 2);
});

for (const rcode of [0, 3]) {
  test(`a negative answer with rcode ${rcode} is cached as long as its SOA script, which is also its TTL`, async () => {
    await using world = new World({ rcode, soa: { ttl: 3600, minimum: 300 } });
    await world.query();
    world.pass(299);
    const cached = await world.query();
    assert.deepEqual([cached.rcode, cached.authorities[0]?.ttl, world.received], [rcode, 1, 1]);
    world.pass(1);
    await world.query();
    assert.equal(world.received, 2);
  });

  test(`a negative answer with rcode ${rcode} without SOA is not cached, unless configured`, async () => {
    await using world = new World({ rcode });
    await world.query();
    await world.query();
    assert.equal(world.received, 2);
    await using cached = new World({ rcode }, { cache: { negativeSecondsWithoutSoa: 5 } });
    await cached.query();
    await cached.query();
    assert.equal(cached.received, 1);
  });

  test(`no negative answer with rcode ${rcode} is cached if so configured`, async () => {
    await using world = new World({ rcode, soa: { ttl: 60, minimum: 60 } }, { cache: { negativeSecondsMax: 0 } });
    await world.query();
    await world.query();
    assert.equal(world.received, 2);
  });
}

test("letter case does not distinguish names; types distinguish questions", async () => {
  await using world = new World({ ttls: [60] });
  await world.query({ name: "Example.org" });
  const { question } = await world.query({ name: "EXAMPLE.org" });
  assert.deepEqual([question?.name, world.received], ["EXAMPLE.org", 1]);
  await world.query({ type: TYPE.TXT });
  await world.query({ name: "example.com" });
  assert.equal(world.received, 3);
});

test("DO and CD distinguish questions; each is forwarded with its own", async () => {
  await using world = new World({ ttls: [60] });
  for (const flags of [0x0100, 0x0110]) {
    for (const isDnssecOk of [false, true]) {
      await world.query({ flags, opt: { isDnssecOk } });
      await world.query({ flags, opt: { isDnssecOk, udpSize: 4096 } });
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

test("AD is only set for clients that request it, by AD or DO", async () => {
  await using world = new World({ ttls: [60], isAuthentic: true });
  const isSet = [];
  for (const query of [{}, { flags: 0x0120 }, { opt: {} }, { opt: { isDnssecOk: true } }]) {
    for (let again = 0; again < 2; again++) isSet.push((await world.query(query)).flags.includes("ad"));
  }
  assert.deepEqual(isSet, [false, false, true, true, false, false, true, true]);
});

test("a container's own servers have entries of their own, whatever their address; those of the host are shared", async () => {
  await using world = new World({ ttls: [60] });
  await world.query({}, clientOf(world.upstream.server));
  await world.query({}, clientOf(world.upstream.server));
  assert.equal(world.received, 2);
  const host: Server = { ...world.upstream.server, from: "host" };
  await world.query({}, clientOf(host));
  await world.query({}, clientOf(host));
  assert.equal(world.received, 3);
  await world.query({}, clientOf(host, world.upstream.server));
  assert.equal(world.received, 4);
  assert.equal((await world.query({}, clientOf())).rcode, 2);
});

test("when servers fail, a stale answer is served and marked; when they are back, they are used again", async () => {
  await using world = new World({ ttls: [60] });
  await world.query();
  world.script = { rcode: 2 };
  world.pass(61);
  const stale = await world.query({ opt: {} });
  assert.deepEqual([stale.rcode, stale.answers[0]?.ttl], [0, 30]);
  assert.equal(stale.additionals[0]?.data.readUInt16BE(4), 3);
  const before = world.received;
  assert.equal((await world.query()).answers[0]?.ttl, 30);
  assert.equal(world.received, before);
  world.script = { ttls: [60] };
  world.pass(6);
  assert.equal((await world.query()).answers[0]?.ttl, 30);
  await world.upstream.receives(before + 1);
  await world.untilTtl(60);
});

test("while servers are silent, later clients get a stale answer at once", async () => {
  using clock = new Clock();
  let isSilent = false;
  const record = aRecord({ owner: aName("example.org"), type: TYPE.A, ttl: 60, data: Buffer.alloc(4) });
  await using upstream = new UdpUpstream((query, reply) => void (isSilent || reply(aReplyTo(query, 0, [record]))));
  const queryPath = new QueryPath({ now: clock.now });
  const client = clientOf(upstream.server);
  const query = aQuery({ name: "example.org" });
  assert.equal((await queryPath.query(client, query)).answers[0]?.ttl, 60);
  isSilent = true;
  clock.advance(61_000);
  const first = queryPath.query(client, query);
  const early = queryPath.query(client, query);
  await upstream.receives(2);
  clock.advance(LIMITS.staleAfterMs + 10);
  for (const reply of [await first, await early]) assert.equal(reply.answers[0]?.ttl, LIMITS.staleTtlSeconds);
  // None of them waits: the clock stands still while they query.
  for (const laterMs of [100, 900, 1_500, 1_500]) {
    clock.advance(laterMs);
    assert.equal((await queryPath.query(client, query)).answers[0]?.ttl, LIMITS.staleTtlSeconds);
  }
  isSilent = false;
  const before = upstream.queries.length;
  clock.advance(LIMITS.failureTimeoutMs);
  await queryPath.query(client, query);
  await upstream.receives(before + 1);
  await untilTtl(60, async () => await queryPath.query(client, query));
});

test("no stale answer is served once servers reply again, even if their reply is not cached", async () => {
  await using world = new World({ ttls: [60] });
  await world.query();
  world.script = { rcode: 2 };
  world.pass(61);
  assert.equal((await world.query()).answers[0]?.ttl, 30);
  world.script = { ttls: [0] };
  world.pass(6);
  // The stale answer that is served at once triggers a refresh.
  await world.query();
  await world.untilTtl(0);
  assert.equal((await world.query()).answers[0]?.ttl, 0);
});

test("an entry that expired too long ago is not served stale, and none is if so configured", async () => {
  for (const parts of [{ cache: { staleSecondsMax: 100 } }, { behaviour: { servesStale: false } }]) {
    await using world = new World({ ttls: [60] }, parts);
    await world.query();
    world.script = { rcode: 2 };
    world.pass(161);
    assert.equal((await world.query()).rcode, 2);
  }
});

test("a failure is cached for a moment, and the answer script so", async () => {
  await using world = new World({ rcode: 2 });
  await world.query();
  const again = await world.query({ opt: {} });
  assert.deepEqual([again.rcode, world.received], [2, 1]);
  assert.match(again.additionals[0]?.data.toString() ?? "", /SERVFAIL/);
  world.pass(5.1);
  await world.query();
  assert.equal(world.received, 2);
});

test("popular entries are refreshed before they expire", async () => {
  await using world = new World({ ttls: [100] });
  await world.query();
  world.pass(89);
  for (let i = 0; i < 3; i++) await world.query();
  assert.equal(world.received, 1);
  world.pass(2);
  for (let i = 0; i < 3; i++) await world.query();
  await world.upstream.receives(2);
  await world.untilTtl(100);
  assert.equal(world.received, 2);
});

test("a local name never gets NXDOMAIN, neither from a server nor from the cache", async () => {
  await using world = new World({ rcode: 3, soa: { ttl: 60, minimum: 60 } });
  const network = aNetwork({ members: [{ names: ["mail.example.org"], ipv4: "172.20.0.2" }] });
  const holder = aClient(
    aView([network], upstreams({ servers: [{ ...world.upstream.server, from: "host" }] })),
    dialHere,
  );
  const stranger = clientOf({ ...world.upstream.server, from: "host" });
  const query = { name: "mail.example.org", type: TYPE.TXT };
  const rcodes = [];
  for (const client of [holder, holder, stranger]) rcodes.push((await world.query(query, client)).rcode);
  assert.deepEqual([rcodes, world.received], [[0, 0, 3], 1]);
});

test("a query in flight when the cache is flushed is answered and not cached, and no query joins it", async () => {
  const late: (() => void)[] = [];
  await using upstream = new UdpUpstream((query, reply) => late.push(() => reply(aReplyTo(query, 3))));
  const queryPath = new QueryPath();
  const client = clientOf({ ...upstream.server, from: "host" });
  const before = queryPath.query(client, aQuery());
  await upstream.receives(1);
  queryPath.forwarder.invalidate();
  const after = queryPath.query(client, aQuery());
  await upstream.receives(2);
  for (const reply of late) reply();
  assert.deepEqual([(await before).rcode, (await after).rcode, queryPath.cache.size], [3, 3, 0]);
});

/** The clock stands still, and with it every timer; a reply that was sent arrives in some later turn of the event loop. */
async function untilTtl(seconds: number, query: () => ReturnType<QueryPath["query"]>): Promise<void> {
  while ((await query()).answers[0]?.ttl !== seconds) await nextRound();
}

type Script = {
  readonly rcode?: number;
  readonly ttls?: readonly number[];
  readonly soa?: { readonly ttl: number; readonly minimum: number };
  readonly isAuthentic?: boolean;
};

// A server with one reply for every question of any client, and the clock.
class World implements AsyncDisposable {
  script: Script;
  readonly upstream: UdpUpstream;
  readonly #queryPath: QueryPath;
  readonly #client;
  #nowMs = 0;

  constructor(script: Script, parts: QueryPathParts = {}) {
    this.script = script;
    this.upstream = new UdpUpstream((query, reply) => reply(this.#reply(query)));
    this.#client = clientOf(this.upstream.server);
    this.#queryPath = new QueryPath({ ...parts, now: () => this.#nowMs });
  }

  get received(): number {
    return this.upstream.queries.length;
  }

  pass(seconds: number): void {
    this.#nowMs += seconds * 1000;
  }

  async query(query: Parameters<typeof aQuery>[0] = {}, client = this.#client): ReturnType<QueryPath["query"]> {
    return await this.#queryPath.query(client, aQuery({ name: "example.org", ...query }));
  }

  async ttls(): Promise<number[]> {
    return (await this.query()).answers.map(({ ttl }) => ttl);
  }

  async untilTtl(seconds: number): Promise<void> {
    await untilTtl(seconds, async () => await this.query());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.upstream[Symbol.asyncDispose]();
  }

  #reply(query: Buffer): Buffer {
    const { rcode = 0, ttls = [], soa, isAuthentic = false } = this.script;
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

// An address, and a TXT of three octets.
const DATA = Buffer.of(3, 0x61, 0x62, 0x63);

function u32(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value);
  return octets;
}
