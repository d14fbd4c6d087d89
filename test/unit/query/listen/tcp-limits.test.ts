// Proves the limits of TCP: connections of a namespace, time for a query and for reading replies, memory of a
// connection. The program's own timers stand still; sockets work normally.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { withLength } from "../../../../src/base/lib/stream-reader.ts";
import type { SyncAnswerer } from "../../../../src/query/ports.ts";
import { Outcome } from "../../../../src/query/record/outcome.ts";
import { aQuery, anOpt } from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { TcpClient } from "../../support/loopback.ts";
import { bufferBytes } from "../../support/buffer-memory.ts";
import { readReply } from "../../support/reply.ts";
import { type TcpRig, tcpListening } from "../../support/tcp-rig.ts";

const PADDING = 12;

test("one connection too many closes the one that has been idle longest", async () => {
  await using rig = await tcpListening();
  const clients = [rig.client];
  await answered(rig.client);
  while (clients.length < LIMITS.clientStreams.each) {
    const client = await TcpClient.open(rig.port);
    await answered(client);
    clients.push(client);
  }
  assert.equal(rig.connections.count, LIMITS.clientStreams.each);
  // The first one sends again, so that the second has been idle longest.
  await answered(rig.client);
  await using late = await TcpClient.open(rig.port);
  await answered(late);
  await clients[1]?.gone;
  assert.equal(rig.connections.count, LIMITS.clientStreams.each);
  await Promise.all(clients.filter((_, index) => index !== 1).map((client) => answered(client)));
  await disposeAll(clients);
});

test("however many connect at once, the number of connections is limited", async () => {
  await using rig = await tcpListening();
  const clients: TcpClient[] = [];
  // Each burst is accepted in one turn of the event loop, before any closed connection is gone.
  for (let burst = 0; burst < 5; burst++) {
    clients.push(...(await Promise.all(Array.from({ length: 100 }, () => TcpClient.open(rig.port)))));
    assert.ok(rig.connections.count <= LIMITS.clientStreams.each, `${rig.connections.count} connections are open`);
  }
  const gone = await Promise.all(clients.slice(0, 300).map((client) => client.gone));
  assert.equal(gone.length, 300);
  await disposeAll(clients);
});

test("a connection without a complete query ends after the time for the first one, however slowly it sends", async () => {
  using clock = new Clock();
  await using rig = await tcpListening();
  await rig.until(() => rig.connections.count === 1);
  clock.advance(LIMITS.tcpFirstQueryMs - 1);
  await rig.client.sendRaw(withLength(aQuery()).subarray(0, -1));
  clock.advance(1);
  await rig.client.gone;
  await rig.until(() => rig.connections.count === 0);
  assert.deepEqual([clock.pending, rig.queryClient.counters.queries], [0, 0]);
});

test("each query restarts the timeout for the next", async () => {
  using clock = new Clock();
  await using rig = await tcpListening();
  for (let count = 0; count < 3; count++) {
    await answered(rig.client);
    clock.advance(LIMITS.tcpIdleMs - 1);
  }
  await answered(rig.client);
  clock.advance(LIMITS.tcpIdleMs);
  await rig.client.gone;
});

test("while a query is in flight upstream its connection stays open, and times out after the answer", async () => {
  using clock = new Clock();
  await using rig = await tcpListening();
  await rig.client.send(aQuery({ id: 1, name: "slow" }));
  await rig.upstream.until(1);
  clock.advance(LIMITS.tcpIdleMs * 3);
  rig.upstream.answer(0);
  assert.equal(readReply(await rig.client.receive()).id, 1);
  clock.advance(LIMITS.tcpIdleMs);
  await rig.client.gone;
});

test("a client that reads no replies is not read further, and disconnected in time", async () => {
  using clock = new Clock();
  let answers = 0;
  const answerer: SyncAnswerer = {
    answer: () => (answers++, 60_000),
    outcome: new Outcome(),
    takeDeferred: () => assert.fail(),
  };
  await using rig = await tcpListening({ answerer });
  rig.client.socket.pause();
  rig.client.socket.write(Buffer.concat(Array.from({ length: 50_000 }, () => withLength(aQuery()))));
  await settled(rig);
  // The kernel buffers some megabytes; beyond those, there are as many as may be unread, and one more.
  assert.ok(answers > 10 && answers < 120, `${answers} are answered`);
  assert.equal(rig.connections.count, 1);
  clock.advance(LIMITS.tcpIdleMs);
  await rig.until(() => rig.connections.count === 0);
});

test("a client that closes its side before it reads any reply still gets all of them", async () => {
  // More than the kernel buffers, so that queries are left over when the client closes its side.
  const answerer: SyncAnswerer = { answer: () => 60_000, outcome: new Outcome(), takeDeferred: () => assert.fail() };
  await using rig = await tcpListening({ answerer });
  rig.client.socket.pause();
  await rig.client.send(...Array.from({ length: 127 }, (_, id) => aQuery({ id })));
  rig.client.socket.end();
  await settled(rig);
  rig.client.socket.resume();
  for (let count = 0; count < 127; count++)
    assert.equal((await rig.client.receive()).length, 60_000, `answer ${count}`);
  assert.equal(await rig.client.gone, "end");
});

test("a client with queries in progress is not read further, whatever it sends", async () => {
  await using rig = await tcpListening({ pipelinedMax: 1 });
  const flood = Buffer.alloc(32 * 1024 * 1024, withLength(aQuery({ name: "slow" })));
  const before = bufferBytes();
  rig.client.socket.write(flood);
  await rig.upstream.until(1);
  await settled(rig);
  assert.ok(rig.client.socket.writableLength > 0, "the client has to wait");
  assert.ok(bufferBytes() - before < 1_000_000);
  assert.equal(rig.upstream.length, 1);
});

test("a message that never ends is buffered as far as it came, and no further", async () => {
  await using rig = await tcpListening();
  const clients = await Promise.all(Array.from({ length: 50 }, () => TcpClient.open(rig.port)));
  const before = bufferBytes();
  for (const client of clients) await client.sendRaw(Buffer.of(0xff, 0xff, 1, 2, 3));
  await settled(rig);
  assert.ok(bufferBytes() - before < 50 * 16_384);
  await disposeAll(clients);
});

const PADDED = aQuery({ name: "web", additionals: [anOpt({ options: [[PADDING, Buffer.alloc(60_000)]] })] });
for (const [what, query, bytes] of [
  ["long queries", PADDED, PADDED.length],
  ["long replies", aQuery({ name: "many" }), 200 * 16],
] as const) {
  test(`${what} on many connections take their turns, so that others are served in between`, async () => {
    await using rig = await tcpListening();
    const clients = await Promise.all(Array.from({ length: 30 }, async () => await TcpClient.open(rig.port)));
    for (const { socket } of clients) for (let count = 0; count < 10; count++) socket.write(withLength(query));
    // A turn of the connections lies between two rounds, before or after it.
    const most = 2 * Math.ceil(LIMITS.streamBudget.bytes / bytes);
    let [before, atOnce] = [0, 0];
    await rig.until(() => {
      const { queries } = rig.queryClient.counters;
      atOnce = Math.max(atOnce, queries - before);
      before = queries;
      return queries === 300;
    });
    assert.ok(atOnce <= most, `${atOnce} queries at once`);
    for (const client of clients) {
      for (let count = 0; count < 10; count++) assert.equal(readReply(await client.receive()).rcode, 0);
      await client[Symbol.asyncDispose]();
    }
  });
}

test("closing the listener closes all connections, even with a query in flight upstream", async () => {
  using clock = new Clock();
  await using rig = await tcpListening();
  await rig.client.send(aQuery({ id: 1, name: "slow" }));
  await rig.upstream.until(1);
  rig.close();
  await rig.client.gone;
  await rig.until(() => rig.connections.count === 0);
  rig.upstream.answer(0);
  assert.equal(clock.pending, 0);
});

async function answered(client: TcpClient): Promise<void> {
  await client.send(aQuery({ id: 5 }));
  assert.equal(readReply(await client.receive()).id, 5);
}

// Until nothing has been written to the client's socket for many turns.
async function settled(rig: TcpRig): Promise<void> {
  const { socket } = rig.client;
  let last = -1;
  let rounds = 0;
  await rig.until(() => {
    const gone = socket.bytesWritten - socket.writableLength;
    rounds = gone === last ? rounds + 1 : 0;
    last = gone;
    return rounds > 200;
  });
}

async function disposeAll(clients: readonly TcpClient[]): Promise<void> {
  await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
}
