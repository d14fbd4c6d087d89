// Proves that the kernel repeats replies of the cache as the process gives them: flags, records and TTLs, for whoever may share
// them and no one else; only what is asked again and again; and that failures among them are counted, each one.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { KERNEL_ANSWER_LIMITS } from "../../../src/features/kernel-answers/limits.ts";
import { ClientAnswers } from "../../../src/features/kernel-answers/client-answers.ts";
import { KernelAnswers } from "../../../src/features/kernel-answers/kernel/kernel-answers.ts";
import type { KernelSpace } from "../../../src/features/kernel-answers/kernel/kernel-space.ts";
import { Client } from "../../../src/query/client/client.ts";
import { Slots } from "../../../src/query/client/slots.ts";
import { FailureTables } from "../../../src/query/failures/failure-table.ts";
import { QueryHistories } from "../../../src/query/history/query-histories.ts";
import { Meter } from "../../../src/query/record/meter.ts";
import { Random } from "../../fuzz/random.ts";
import { PROCESS_PORT, kernelReply } from "./kernel-program.ts";
import {
  TYPE,
  aClient,
  aName,
  aQuery,
  aRecord,
  aReplyTo,
  aView,
  anOpt,
  u16,
  upstreams,
} from "../../support/scripted/builders.ts";
import { dialHere } from "../../unit/support/loopback.ts";
import { QueryPath, type QueryPathParts, realNow } from "../../unit/support/query-path.ts";
import { type Reply, readReply } from "../../unit/support/reply.ts";
import { UdpUpstream } from "../../unit/support/upstreams.ts";

const QUERIES = Number(process.env["KERNEL_QUERIES"] ?? 2_500);
const SEED = 20_260_303;
const [CD, AD, RD] = [0x10, 0x20, 0x100];
const CONTAINER = "web-id";
// A period ends every 8.6 s; then the process has to be asked twice again. The kernel's clock is that of its last tick.
const TRIES = 6;
const TICK_MS = 12;
// So often that what is as likely as three others happens.
const MANY = 200;

const kernel = new KernelAnswers(KERNEL_ANSWER_LIMITS);

interface ReplyScript {
  readonly rcode?: number;
  readonly ttls?: readonly number[];
  // Of one answer after the other; the last one is that of the rest.
  readonly data?: readonly Buffer[];
  readonly soaTtl?: number;
  readonly isAuthentic?: boolean;
  readonly authority?: Buffer;
  readonly additionals?: readonly Buffer[];
}

function scripted(query: Buffer, script: ReplyScript): Buffer {
  const { rcode = 0, ttls = [], data = [Buffer.of(192, 0, 2, 1)], soaTtl, additionals = [] } = script;
  const type = query.readUInt16BE(query.indexOf(0, 12) + 1);
  const answers = ttls.map((ttl, index) =>
    aRecord({ owner: Buffer.of(0xc0, 12), type, ttl, data: data[Math.min(index, data.length - 1)] as Buffer }),
  );
  const soa = Buffer.concat([
    aName("ns"),
    aName("admin"),
    ...[1, 2, 3, 4, 60].map((value) => Buffer.of(0, 0, 0, value)),
  ]);
  const authorities = [...(script.authority ? [script.authority] : [])];
  if (soaTtl !== undefined) authorities.push(aRecord({ owner: "test", type: 6, ttl: soaTtl, data: soa }));
  const message = Buffer.concat([aReplyTo(query, rcode, answers), ...authorities, ...additionals]);
  message.set(u16(authorities.length), 8);
  message.set(u16(additionals.length), 10);
  if (script.isAuthentic === true) message[3] = (message[3] as number) | AD;
  return message;
}

// A container whose outside names a server answers by this script, with or without the kernel.
class World {
  readonly upstream: UdpUpstream;
  readonly space: KernelSpace;
  readonly client: Client;
  readonly answers: ClientAnswers;
  readonly meter = new Meter();
  readonly histories = new QueryHistories("full");
  readonly failures = new FailureTables("full");
  readonly path: QueryPath;
  // Queries that the process has got.
  asked = 0;

  constructor(t: TestContext, script: (query: Buffer) => ReplyScript, parts: QueryPathParts = {}) {
    const upstream = new UdpUpstream((query, reply) => reply(scripted(query, script(query))), "host");
    const space = kernel.open();
    assert.ok(space !== undefined);
    this.space = space;
    kernel.kinds.takeCounts(() => undefined);
    this.meter.repeated = kernel.kinds;
    const view = aView([], upstreams({ servers: [upstream.server] }));
    const [history, failing] = [this.histories.open(CONTAINER), this.failures.open(CONTAINER)];
    this.client = new Client(view, dialHere, new Slots(), history, undefined, failing);
    this.answers = new ClientAnswers(this.client, space);
    space.serve(PROCESS_PORT);
    this.path = new QueryPath({ now: realNow, ...parts });
    t.after(async () => {
      this.answers.end();
      space.close();
      await upstream[Symbol.asyncDispose]();
    });
    this.upstream = upstream;
  }

  async process(query: Buffer): Promise<Buffer> {
    this.asked++;
    return await this.path.raw(this.client, query);
  }

  // The kernel's reply, after the process has been asked as often as it takes.
  async kernel(query: Buffer): Promise<Buffer | undefined> {
    for (let time = 0; time < TRIES; time++) {
      const reply = kernelReply(this.space, query);
      if (reply !== undefined) return reply;
      await this.process(query);
      if (time > 2) await sleep(TICK_MS);
    }
    return undefined;
  }
}

// As its type wants it.
function dataOf(type: number, random: Random): Buffer {
  if (type === TYPE.A) return random.bytes(4);
  if (type === TYPE.AAAA) return random.bytes(16);
  const text = random.bytes(random.below(40));
  return Buffer.concat([Buffer.of(text.length), text]);
}

// Where addresses are the last records, their order is random.
function inOrder({ question, answers, authorities }: Reply): Reply["answers"] {
  const hasAddresses = question?.type === TYPE.A || question?.type === TYPE.AAAA;
  if (!hasAddresses || authorities.length > 0) return answers;
  const data = answers.map((record) => record.data).toSorted((a, b) => Buffer.compare(a, b));
  return answers.map((record, index) => ({ ...record, data: data[index] as Buffer }));
}

function withoutTtls(reply: Buffer): unknown {
  const read = readReply(reply);
  const section = (records: Reply["answers"]): unknown => records.map((record) => ({ ...record, ttl: 0 }));
  const ttls = [...read.answers, ...read.authorities].map(({ ttl }) => ttl);
  return [
    { ...read, answers: section(inOrder(read)), authorities: section(read.authorities) },
    read.additionals.map(({ type, ttl }) => (type === TYPE.OPT ? ttl : 0)),
    ttls.map((ttl) => ttl > 0),
  ];
}

test("what is asked twice is repeated, as the process says it; what is asked once is not", async (t) => {
  const world = new World(t, () => ({ ttls: [300, 60] }));
  const query = aQuery({ name: "Popular.test", type: TYPE.A });
  await world.process(query);
  await world.process(query);
  assert.equal(kernelReply(world.space, query), undefined);
  const reply = await world.kernel(query);
  assert.ok(reply !== undefined);
  assert.deepEqual(withoutTtls(reply), withoutTtls(await world.process(query)));
  for (let index = 0; index < 500; index++) {
    const once = aQuery({ name: `n${index}.test`, type: TYPE.A });
    await world.process(once);
    await world.process(once);
    assert.equal(kernelReply(world.space, once), undefined);
  }
  assert.equal(world.client.counters.cached, world.asked - world.upstream.queries.length);
});

for (const [what, type, bytes] of [
  ["IPv4", TYPE.A, 4],
  ["IPv6", TYPE.AAAA, 16],
] as const) {
  test(`of several ${what} addresses another one is the first each time, and all of them are there`, async (t) => {
    const data = [1, 2, 3, 4].map((last) => Buffer.concat([Buffer.alloc(bytes - 1, 9), Buffer.of(last)]));
    const world = new World(t, () => ({ ttls: [300, 300, 300, 300], data }));
    const query = aQuery({ name: "popular.test", type });
    const lastOf = (reply: Buffer): number[] => readReply(reply).answers.map((record) => record.data.at(-1) ?? 0);
    for (const ask of [() => world.process(query), () => world.kernel(query)]) {
      const first = new Set<number | undefined>();
      for (let time = 0; time < MANY; time++) {
        const given = lastOf((await ask()) as Buffer);
        assert.deepEqual(
          given.toSorted((a, b) => a - b),
          [1, 2, 3, 4],
        );
        first.add(given[0]);
      }
      assert.equal(first.size, 4);
    }
  });
}

test("addresses after an alias change places, other types and replies with more records keep their order", async (t) => {
  const alias = aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.CNAME, ttl: 300, data: aName("cdn.test") });
  const address = (last: number): Buffer =>
    aRecord({ owner: aName("cdn.test"), type: TYPE.A, ttl: 300, data: Buffer.of(192, 0, 2, last) });
  const upstream = new UdpUpstream((query, reply) => reply(aReplyTo(query, 0, [alias, ...[1, 2, 3].map(address)])));
  t.after(async () => await upstream[Symbol.asyncDispose]());
  const world = new World(t, (query) => ({
    ttls: [300, 300, 300],
    data: [1, 2, 3].map((last) => Buffer.of(query.includes("text") ? 3 : 192, 0, 2, last)),
    ...(query.includes("more") && { soaTtl: 300 }),
  }));
  const client = aClient(aView([], upstreams({ servers: [upstream.server] })), dialHere);
  const ofClient = new ClientAnswers(client, world.space);
  t.after(() => ofClient.end());
  const first = new Set<number | undefined>();
  const chased = aQuery({ name: "www.test", type: TYPE.A });
  for (let time = 0; time < MANY; time++) {
    await world.path.raw(client, chased);
    const reply = kernelReply(world.space, chased);
    if (reply === undefined) continue;
    const [cname, ...addresses] = readReply(reply).answers;
    assert.equal(cname?.type, TYPE.CNAME);
    first.add(addresses[0]?.data[3]);
  }
  assert.equal(first.size, 3);
  for (const [name, type] of [
    ["text.test", TYPE.TXT],
    ["more.test", TYPE.A],
  ] as const) {
    const query = aQuery({ name, type });
    for (let time = 0; time < 32; time++) {
      const { answers } = readReply((await (time % 2 ? world.kernel(query) : world.process(query))) as Buffer);
      assert.deepEqual(
        answers.map(({ data }) => data[3]),
        [1, 2, 3],
        name,
      );
    }
  }
});

test("TTLs are counted down as the process does, from the age that the reply has already", async (t) => {
  let aheadMs = 0;
  const world = new World(t, () => ({ ttls: [3_000, 300] }), {
    now: () => performance.now() + aheadMs,
    behaviour: { prefetches: false },
  });
  const query = aQuery({ name: "popular.test", type: TYPE.A });
  await world.process(query);
  aheadMs = 12_345;
  const seen = new Set<number>();
  for (let round = 0; round < 24; round++) {
    const askedMs = performance.now();
    const reply = readReply((await world.kernel(query)) as Buffer);
    const expected = readReply(await world.process(query));
    const [[long = 0, short = 0], [longest = 0]] = [
      reply.answers.map(({ ttl }) => ttl),
      expected.answers.map(({ ttl }) => ttl),
    ];
    assert.equal(long - short, 2_700);
    // The kernel's clock is that of the last tick, and the process is asked later.
    const laterSeconds = Math.ceil((performance.now() - askedMs) / 1_000);
    assert.ok(long >= longest && long <= longest + laterSeconds, `${long} instead of ${longest}`);
    seen.add(short);
    await sleep(100);
  }
  assert.ok(seen.size >= 2 && Math.max(...seen) <= 288, [...seen].join());
  // In the last tenth of its time the process refreshes it.
  aheadMs = 275_000;
  world.space.forget();
  assert.equal(await world.kernel(query), undefined);
});

test("TTLs at the edges are those of the process, and what ends at once is not repeated", async (t) => {
  const ttls = [0, 1, 2, 86_399, 86_400, 86_401, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1];
  const world = new World(t, (query) => ({ ttls: [ttls[Number(query.toString("latin1", 14, 15))] as number] }));
  const repeated: number[] = [];
  for (const [index, ttl] of ttls.entries()) {
    const query = aQuery({ name: `t${index}.test`, type: TYPE.A });
    const askedMs = performance.now();
    const reply = await world.kernel(query);
    if (reply === undefined) continue;
    repeated.push(ttl);
    const seen = readReply(reply).answers[0]?.ttl ?? -1;
    // What has ended meanwhile, the process gets again.
    const process = ttl < 60 ? 0 : (readReply(await world.process(query)).answers[0]?.ttl ?? -1);
    const most = ttl < 60 ? ttl : process + Math.ceil((performance.now() - askedMs) / 1_000);
    assert.ok(process >= 0 && seen >= process && seen <= most, `${ttl}: ${seen}, by the process ${process}`);
  }
  assert.ok(!repeated.includes(0));
  assert.ok(
    [86_399, 86_400, 86_401, 2 ** 31 - 1].every((ttl) => repeated.includes(ttl)),
    repeated.join(),
  );
});

test("a reply that is large, has many records or an extended error is the process's", async (t) => {
  const scripts: Record<string, ReplyScript> = {
    large: { ttls: [300], data: [Buffer.alloc(240, 65)] },
    many: { ttls: Array.from({ length: 9 }, () => 300) },
    explained: { ttls: [300], additionals: [anOpt({ options: [[15, Buffer.of(0, 3)]] })] },
    fine: { ttls: Array.from({ length: 8 }, () => 300) },
  };
  const world = new World(
    t,
    (query) => scripts[query.toString("latin1", 13, 13 + (query[12] as number))] as ReplyScript,
  );
  for (const name of Object.keys(scripts)) {
    const query = aQuery({ name: `${name}.test`, type: TYPE.A, opt: {} });
    assert.equal((await world.kernel(query)) !== undefined, name === "fine", name);
  }
});

test("a reply of which records were left out for want of room is not for those who have more", async (t) => {
  const record = aRecord({ owner: "test", type: 4711, ttl: 300, data: Buffer.alloc(459, 7) });
  const world = new World(t, () => ({ ttls: [300], authority: record }));
  const [small, large] = [undefined, { isDnssecOk: true }].map((opt) =>
    aQuery({ name: "signed.test", type: TYPE.A, ...(opt && { opt }) }),
  ) as [Buffer, Buffer];
  assert.equal(await world.kernel(small), undefined);
  const counts = [small, large].map(async (query) => readReply(await world.process(query)).counts);
  assert.deepEqual(await Promise.all(counts), [
    [1, 1, 0, 0],
    [1, 1, 1, 1],
  ]);
});

test("DO and CD are other questions; AD is given to whoever requests it, if the server has set it", async (t) => {
  const world = new World(t, (query) => ({ ttls: [300], isAuthentic: query.includes("signed") }));
  for (const name of ["signed.test", "plain.test"]) {
    for (const flags of [RD, RD | AD, RD | CD, RD | AD | CD]) {
      for (const isDnssecOk of [undefined, false, true]) {
        const query = aQuery({ name, type: TYPE.A, flags, ...(isDnssecOk !== undefined && { opt: { isDnssecOk } }) });
        const reply = await world.kernel(query);
        assert.ok(reply !== undefined);
        assert.deepEqual(withoutTtls(reply), withoutTtls(await world.process(query)), query.toString("hex"));
      }
    }
  }
  const notRecursive = aQuery({ name: "plain.test", type: TYPE.A, flags: 0 });
  assert.equal(await world.kernel(notRecursive), undefined);
});

test("another namespace does not get it, and a change of names ends it in the same step", async (t) => {
  const world = new World(t, () => ({ ttls: [300] }));
  const other = kernel.open() as KernelSpace;
  t.after(() => other.close());
  other.serve(PROCESS_PORT);
  const query = aQuery({ name: "popular.test", type: TYPE.A });
  assert.ok((await world.kernel(query)) !== undefined);
  assert.equal(kernelReply(other, query), undefined);
  world.space.forget();
  assert.equal(kernelReply(world.space, query), undefined);
  assert.ok((await world.kernel(query)) !== undefined);
});

test("names that do not exist are counted, each query of them, also those that the kernel has answered", async (t) => {
  const world = new World(t, () => ({ rcode: 3, soaTtl: 300 }));
  const query = aQuery({ name: "missing.search.test", type: TYPE.A });
  let byKernel = 0;
  while (byKernel < 1_000) if ((await world.kernel(query)) !== undefined) byKernel++;
  const counted = (): readonly [number | undefined, number] => {
    const [record] = [...world.failures.tables()].flatMap((table) => [...table.records()]);
    return [record?.count, world.client.counters.nxdomain];
  };
  const { queries, cached, kernel: repeated } = world.client.counters;
  assert.equal(repeated, 0);
  const asked = queries + byKernel;
  assert.deepEqual(counted(), [asked, asked]);
  assert.deepEqual(counted(), [asked, asked]);
  const { counters } = world.client;
  assert.deepEqual(
    [counters.queries, counters.cached, counters.kernel, counters.local],
    [asked, cached + byKernel, byKernel, 0],
  );
  world.meter.collect();
  assert.equal(world.meter.cache.denials, byKernel);
  // Nothing is lost when the kernel ends.
  assert.ok((await world.kernel(query)) !== undefined);
  world.answers.end();
  assert.equal(counted()[0], world.client.counters.queries);
});

test("queries that the kernel answers from the cache are in the history as such", async (t) => {
  const world = new World(t, () => ({ ttls: [300] }));
  const query = aQuery({ name: "popular.test", type: TYPE.A });
  assert.ok((await world.kernel(query)) !== undefined);
  const history = world.client.history;
  history.repeated?.switched();
  const before = history.lastSeq;
  for (let time = 0; time < 5; time++) assert.ok((await world.kernel(query)) !== undefined);
  history.repeated?.read();
  const seen = [...history.since(before)].map(({ name, result }) => `${name} ${result}`);
  assert.ok(seen.length >= 5, seen.join());
  assert.deepEqual([...new Set(seen)], ["popular.test cached"]);
});

test("random replies to random queries are the same from the kernel and the process", async (t) => {
  const world = new World(t, (query) => {
    const question = query.subarray(12, query.indexOf(0, 12) + 3);
    const random = new Random(SEED, question.reduce((sum, byte) => sum * 31 + (byte | 0x20), 0) % 1_000_003);
    const [count, rcode] = [random.below(5), random.once(5) ? 3 : 0];
    return {
      rcode,
      ttls: Array.from({ length: count }, () => 20 + random.below(100_000)),
      data: Array.from({ length: 5 }, () => dataOf(query.readUInt16BE(query.indexOf(0, 12) + 1), random)),
      isAuthentic: random.once(2),
      ...((count === 0 || rcode === 3 || random.once(3)) && { soaTtl: 300 }),
    };
  });
  const types = [TYPE.A, TYPE.AAAA, TYPE.TXT];
  let answered = 0;
  for (let index = 0; index < QUERIES; index++) {
    const random = new Random(SEED, index);
    const name = `${"label.".repeat(random.below(8))}n${random.below(40)}.Test`;
    const query = aQuery({
      id: random.below(0x10000),
      name: random.once(2) ? name.toLowerCase() : name,
      type: random.pick(types),
      flags: RD | (random.once(3) ? random.pick([AD, CD, AD | CD]) : 0),
      ...(random.once(2) && {
        opt: {
          isDnssecOk: random.once(2),
          udpSize: random.pick([0, 512, 1232]),
          ...(random.once(3) && { options: [[10, random.bytes(8)] as const] }),
        },
      }),
    });
    const reply = await world.kernel(query);
    if (reply === undefined) continue;
    answered++;
    assert.deepEqual(withoutTtls(reply), withoutTtls(await world.process(query)), query.toString("hex"));
  }
  t.diagnostic(`${answered} of ${QUERIES} were answered by the kernel`);
  assert.ok(answered > QUERIES / 2);
});
