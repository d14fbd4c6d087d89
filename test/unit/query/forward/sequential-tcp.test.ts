// Proves forwarding over TCP, on real sockets.

import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { withLength } from "../../../../src/base/lib/stream-reader.ts";
import { STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { TYPE, aName, aPointer, aQuery, aRecord, aReplyTo } from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { Forwarding } from "../../support/forwarding.ts";
import { readReply } from "../../support/reply.ts";
import { TcpUpstream, closedTcpServer, write } from "../../support/upstreams.ts";

const QUERY = aQuery({ id: 0xbeef, name: "Example.org" });
const REPLY = aReplyTo(QUERY);
const transport = "tcp";

const good = (query: Buffer, socket: Socket): void => write(socket, aReplyTo(query));

test("a reply over TCP is the answer, and its connection is closed", async () => {
  await using upstream = await TcpUpstream.start(good);
  const forwarding = new Forwarding({ query: QUERY, transport, servers: [upstream.server] });
  assert.deepEqual(await forwarding.reply, REPLY);
  assert.deepEqual(upstream.queries, [QUERY]);
  while (upstream.open > 0) await new Promise((resolve) => setImmediate(resolve));
});

test("a reply of maximum length in small segments is reassembled", async () => {
  const room = 65_535 - REPLY.length - aRecord({ type: 10 }).length;
  const big = aReplyTo(QUERY, 0, [aRecord({ type: 10, data: Buffer.alloc(room, 1) })]);
  await using upstream = await TcpUpstream.start((_query, socket) => void drip(socket, withLength(big)));
  const forwarding = new Forwarding({ query: QUERY, transport, servers: [upstream.server] });
  assert.deepEqual([big.length, (await forwarding.reply).equals(big)], [65_535, true]);
});

const FAILING: Readonly<Record<string, readonly [(query: Buffer, socket: Socket) => void, RegExp]>> = {
  "a connection that is closed without a word": [(_query, socket) => void socket.end(), /closed without a reply/],
  "a connection that is closed midway": [
    (query, socket) => void socket.end(withLength(aReplyTo(query)).subarray(0, -1)),
    /closed without a reply/,
  ],
  "a connection that is reset": [(_query, socket) => void socket.resetAndDestroy(), /ECONNRESET|closed without/],
  "a reply of another id": [(_query, socket) => write(socket, aReplyTo(aQuery({ id: 1 }))), /another id/],
  "an empty message": [(_query, socket) => write(socket, Buffer.alloc(0)), /another id/],
  "garbage behind the id": [
    (query, socket) => write(socket, Buffer.concat([query.subarray(0, 2), Buffer.alloc(30, 0xff)])),
    /cannot be parsed/,
  ],
};

for (const [what, [script, reason]] of Object.entries(FAILING)) {
  test(`${what}: the next server is queried at once`, async () => {
    using clock = new Clock();
    await using first = await TcpUpstream.start(script);
    await using second = await TcpUpstream.start(good);
    const forwarding = new Forwarding({ query: QUERY, transport, servers: [first.server, second.server] });
    assert.deepEqual(await forwarding.reply, REPLY);
    assert.match(forwarding.reasons.join(), reason);
    assert.deepEqual([clock.pending, forwarding.replies, forwarding.client.slots.taken], [0, 1, 0]);
  });
}

test("a closed port: the next server is queried at once", async () => {
  using clock = new Clock();
  await using second = await TcpUpstream.start(good);
  const forwarding = new Forwarding({ query: QUERY, transport, servers: [await closedTcpServer(), second.server] });
  assert.deepEqual(await forwarding.reply, REPLY);
  assert.match(forwarding.reasons.join(), /ECONNREFUSED/);
  assert.equal(clock.pending, 0);
});

test("a server that sends byte by byte has one time limit in all", async () => {
  using clock = new Clock();
  await using first = await TcpUpstream.start(
    (query, socket) => void socket.write(withLength(aReplyTo(query)).subarray(0, 5)),
  );
  await using second = await TcpUpstream.start(good);
  const forwarding = new Forwarding({ query: QUERY, transport, servers: [first.server, second.server] });
  await first.receives(1);
  clock.advance(LIMITS.forwardServerMs);
  assert.deepEqual(await forwarding.reply, REPLY);
  assert.deepEqual(forwarding.reasons, ["timed out"]);
});

test("a query that would exceed a TCP message with its name written out fails, without an upstream query", async () => {
  // The question is a pointer into the data of a record that fills the message to the last octet.
  const name = aName([63, 63, 63, 61].map((size) => "a".repeat(size)).join("."));
  const dataBytes = 65_535 - (12 + 2 + 4 + 11);
  const record = aRecord({ type: 10, data: Buffer.concat([name, Buffer.alloc(dataBytes - name.length)]) });
  const query = aQuery({ name: aPointer(12 + 2 + 4 + 11), type: TYPE.A, additionals: [record] });
  assert.equal(query.length, 65_535);
  await using upstream = await TcpUpstream.start(good);
  const forwarding = new Forwarding({ query, transport, behaviour: STRICT_BEHAVIOUR, servers: [upstream.server] });
  const { rcode, question } = readReply(await forwarding.reply);
  assert.deepEqual([rcode, question?.name.length, upstream.queries.length], [2, 253, 0]);
});

async function drip(socket: Socket, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += 4_000) {
    await new Promise((resolve) => socket.write(bytes.subarray(at, at + 4_000), resolve));
  }
}
