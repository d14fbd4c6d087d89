// Proves which servers are queried, in which order, and which reply is the answer; over UDP, on real sockets.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { TYPE, aClient, aQuery, aRecord, aReplyTo, aView, upstreams } from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { Forwarding } from "../../support/forwarding.ts";
import { dialHere } from "../../support/loopback.ts";
import { readReply } from "../../support/reply.ts";
import { type UdpScript, UdpUpstream, closedUdpServer } from "../../support/upstreams.ts";

const QUERY = aQuery({ id: 0xbeef, flags: 0x0110, name: "Example.org", opt: { udpSize: 1232 } });
const ADDRESS = aRecord({ owner: "Example.org", type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2, 1) });

const good: UdpScript = (query, reply) => reply(aReplyTo(query, 0, [ADDRESS]));
const silent: UdpScript = () => undefined;
const coded =
  (rcode: number): UdpScript =>
  (query, reply) =>
    reply(aReplyTo(query, rcode));

test("the first server's reply is the answer, octet by octet, and the second is not queried", async () => {
  await using first = new UdpUpstream(good);
  await using second = new UdpUpstream(good);
  const forwarding = new Forwarding({ query: QUERY, servers: [first.server, second.server] });
  assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, 0, [ADDRESS]));
  assert.deepEqual([first.queries, second.queries], [[QUERY], []]);
  assert.deepEqual([forwarding.failures, forwarding.client.slots.taken, forwarding.forwarder.inFlight], [[], 0, 0]);
});

test("observers are told which rule delayed the query, for a reply and for a failure", async () => {
  for (const script of [good, coded(2)]) {
    await using upstream = new UdpUpstream(script);
    const client = aClient(aView([], upstreams({ servers: [upstream.server] })), dialHere);
    const noted: unknown[] = [];
    client.notes = [{ note: ({ rule }) => noted.push(rule) }];
    const forwarding = new Forwarding({ query: QUERY, client, rule: "delay of a test" });
    await forwarding.reply;
    assert.deepEqual(noted, ["delay of a test"]);
  }
});

for (const rcode of [1, 3, 4, 6, 9, 15]) {
  test(`a reply with rcode ${rcode} is final`, async () => {
    await using first = new UdpUpstream(coded(rcode));
    await using second = new UdpUpstream(good);
    const forwarding = new Forwarding({ query: QUERY, servers: [first.server, second.server] });
    assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, rcode));
    assert.equal(second.queries.length, 0);
  });
}

for (const [word, rcode] of Object.entries({ SERVFAIL: 2, REFUSED: 5 })) {
  test(`${word} goes on to the next server`, async () => {
    await using first = new UdpUpstream(coded(rcode));
    await using second = new UdpUpstream(good);
    const forwarding = new Forwarding({ query: QUERY, servers: [first.server, second.server] });
    assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, 0, [ADDRESS]));
    assert.deepEqual([first.queries.length, second.queries.length], [1, 1]);
  });
}

for (const [mode, behaviour] of Object.entries({ strict: STRICT_BEHAVIOUR, default: DEFAULT_BEHAVIOUR })) {
  test(`${mode}: when all servers fail, the error reply is ours, without RA`, async () => {
    await using upstream = new UdpUpstream(coded(5));
    const forwarding = new Forwarding({ query: QUERY, behaviour, servers: [upstream.server, upstream.server] });
    const { id, flags, rcode, question, additionals } = readReply(await forwarding.reply);
    assert.deepEqual([id, flags, rcode, question?.name], [0xbeef, "qr rd cd", 2, "Example.org"]);
    assert.equal(additionals.length, behaviour.speaksEdns ? 1 : 0);
    assert.deepEqual([upstream.queries.length, forwarding.client.counters.failed], [2, 1]);
    const [lookup = ""] = forwarding.failedLookups;
    assert.match(lookup, /example.*: \S*: REFUSED; \S*: REFUSED$/s, "the failed lookup is reported with its name");
  });
}

test("without servers the answer is an error reply, after the call has returned", async () => {
  const forwarding = new Forwarding({ query: QUERY, servers: [] });
  assert.equal(forwarding.replies, 0);
  const { rcode, flags } = readReply(await forwarding.reply);
  assert.deepEqual([rcode, flags], [2, "qr rd cd"]);
});

test("a silent server gets its time, then the next one is queried; a late reply is ignored", async () => {
  using clock = new Clock();
  const late: (() => void)[] = [];
  await using first = new UdpUpstream((query, reply) => late.push(() => reply(aReplyTo(query, 3))));
  await using second = new UdpUpstream(silent);
  await using third = new UdpUpstream(good);
  const servers = [first.server, second.server, third.server];
  const forwarding = new Forwarding({ query: QUERY, servers });
  await first.receives(1);
  clock.advance(LIMITS.forwardServerMs - 1);
  assert.equal(second.queries.length, 0);
  clock.advance(1);
  await second.receives(1);
  for (const reply of late) reply();
  assert.equal(third.queries.length, 0);
  clock.advance(LIMITS.forwardServerMs);
  assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, 0, [ADDRESS]));
  assert.deepEqual(forwarding.reasons, ["timed out", "timed out"]);
  assert.deepEqual([clock.pending, forwarding.replies], [0, 1]);
});

test("a reply with another id is ignored, and the right one is used", async () => {
  const other = aReplyTo(aQuery({ id: 0xbeee }), 3);
  await using upstream = new UdpUpstream((query, reply) => {
    for (const message of [other, Buffer.alloc(0), Buffer.of(0xbe), aReplyTo(query, 0, [ADDRESS])]) reply(message);
  });
  const forwarding = new Forwarding({ query: QUERY, servers: [upstream.server] });
  assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, 0, [ADDRESS]));
});

test("a server that only sends other ids gets its time, and no more", async () => {
  using clock = new Clock();
  await using first = new UdpUpstream((query, reply) => reply(aReplyTo(aQuery({ id: query.readUInt16BE() ^ 1 }))));
  await using second = new UdpUpstream(good);
  const forwarding = new Forwarding({ query: QUERY, servers: [first.server, second.server] });
  await first.receives(1);
  clock.advance(LIMITS.forwardServerMs);
  assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, 0, [ADDRESS]));
});

const UNREADABLE: Readonly<Record<string, (query: Buffer) => Buffer>> = {
  "two octets": (query) => query.subarray(0, 2),
  "half a header": (query) => query.subarray(0, 7),
  "garbage behind the id": (query) => Buffer.concat([query.subarray(0, 2), Buffer.alloc(30, 0xff)]),
  "a record that is cut": (query) => aReplyTo(query, 0, [ADDRESS]).subarray(0, -1),
  "a reply that is larger than was announced": (query) =>
    aReplyTo(
      query,
      0,
      Array.from({ length: 60 }, () => ADDRESS),
    ),
};

for (const [what, make] of Object.entries(UNREADABLE)) {
  test(`${what}: the next server is queried at once`, async () => {
    using clock = new Clock();
    await using first = new UdpUpstream((query, reply) => reply(make(query)));
    await using second = new UdpUpstream(good);
    const forwarding = new Forwarding({ query: QUERY, servers: [first.server, second.server] });
    assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, 0, [ADDRESS]));
    assert.deepEqual(forwarding.reasons, ["the reply cannot be parsed"]);
    assert.equal(clock.pending, 0);
  });
}

test("without an OPT a reply of any size is passed on", async () => {
  const answers = Array.from({ length: 400 }, () => ADDRESS);
  await using upstream = new UdpUpstream((sent, reply) => reply(aReplyTo(sent, 0, answers)));
  const query = aQuery({ name: "Example.org" });
  const forwarding = new Forwarding({ query, servers: [upstream.server] });
  assert.equal((await forwarding.reply).length, aReplyTo(query, 0, answers).length);
});

test("an OPT with less than 512 octets means 512", async () => {
  const query = aQuery({ name: "Example.org", opt: { udpSize: 100 } });
  const answers = Array.from({ length: 17 }, () => ADDRESS);
  await using upstream = new UdpUpstream((sent, reply) => reply(aReplyTo(sent, 0, answers)));
  const forwarding = new Forwarding({ query, servers: [upstream.server] });
  const { length } = await forwarding.reply;
  assert.ok(length > 100 && length <= 512);
});

test("a truncated reply is passed on unchanged", async () => {
  await using upstream = new UdpUpstream((query, reply) => reply(truncated(query)));
  const forwarding = new Forwarding({ query: QUERY, servers: [upstream.server] });
  assert.deepEqual(await forwarding.reply, truncated(QUERY));
});

test("a closed port, and a server without a route, are skipped at once", async () => {
  using clock = new Clock();
  await using good3 = new UdpUpstream(good);
  const servers = [
    await closedUdpServer(),
    { from: "container" as const, address: "no address", port: 53 },
    good3.server,
  ];
  const forwarding = new Forwarding({ query: QUERY, servers });
  assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, 0, [ADDRESS]));
  assert.match(forwarding.reasons[0] ?? "", /ECONNREFUSED/);
  assert.match(forwarding.reasons[1] ?? "", /no address/);
  assert.deepEqual([clock.pending, forwarding.client.slots.taken], [0, 0]);
});

test("a local name never gets NXDOMAIN: it becomes an empty answer, all else stays", async () => {
  for (const [rcode, expected] of [
    [3, 0],
    [0, 0],
    [4, 4],
  ] as const) {
    await using upstream = new UdpUpstream(coded(rcode));
    const forwarding = new Forwarding({ query: QUERY, servers: [upstream.server], isLocalName: true });
    assert.deepEqual(await forwarding.reply, aReplyTo(QUERY, expected));
  }
});

function truncated(query: Buffer): Buffer {
  const message = aReplyTo(query);
  message.writeUInt8(message.readUInt8(2) | 2, 2);
  return message;
}
