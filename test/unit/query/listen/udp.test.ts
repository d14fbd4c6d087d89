// Proves the UDP listener on real sockets: waiting packets are answered together, and no client can affect another.

import assert from "node:assert/strict";
import { closeSync } from "node:fs";
import { test } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";

import { LIMITS } from "../../../../src/base/limits.ts";
import { AF_INET, SOCK_RAW, duplicate, sendTo, socket, threadMs } from "../../../../src/kernel/libc.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../../src/query/answer.ts";
import type { Client } from "../../../../src/query/client/client.ts";
import type { SyncAnswerer } from "../../../../src/query/ports.ts";
import { UdpListener, packetOwnersOf, TimeSlice } from "../../../../src/query/listen/udp.ts";
import { aQuery, aReplyTo, u16 } from "../../../support/scripted/builders.ts";
import { LOOPBACK, UdpClient, bindUdp, sockaddr } from "../../support/loopback.ts";
import { type UdpTestParts, WEB, clientOnOneNetwork, udpParts } from "../../support/listening.ts";
import { addressesIn, readReply } from "../../support/reply.ts";

const ROOT = process.getuid?.() === 0;
const IPPROTO_UDP = 17;

test("waiting queries are answered in one batch", async () => {
  await using rig = listening();
  for (let id = 0; id < 40; id++) sendNow(rig, aQuery({ id }));
  for (let id = 0; id < 40; id++) {
    const reply = readReply(await rig.client.receive());
    assert.deepEqual([reply.id, addressesIn(reply)], [id, [WEB]]);
  }
  const { receives, flushes } = rig.parts.block;
  assert.deepEqual([countsOf(receives), flushes.length], [[39], 1]);
});

test("each turn of the event loop takes at most one batch, so that other clients get their turn", async () => {
  await using rig = listening();
  // As many as fit into a socket with the kernel's default buffer.
  const total = 250;
  for (let id = 0; id < total; id++) sendNow(rig, aQuery({ id }));
  const ids = new Set<number>();
  while (ids.size < total) ids.add(readReply(await rig.client.receive()).id);
  const { receives, flushes } = rig.parts.block;
  assert.equal(new Set(receives.map(({ round }) => round)).size, receives.length);
  // Node delivers the first query of all.
  const { udpBatch: most } = LIMITS;
  assert.deepEqual([countsOf(receives), flushes.length], [[most - 1, most, most, total - 3 * most], 4]);
});

test("while most queries are forwarded, batches are smaller", async () => {
  await using rig = listening();
  for (let id = 0; id < 40; id++) sendNow(rig, aQuery({ id, name: "elsewhere" }));
  await rig.parts.upstream.until(40);
  for (let id = 0; id < 40; id++) sendNow(rig, aQuery({ id }));
  for (let id = 0; id < 40; id++) await rig.client.receive();
  const { udpBatchDeferred: most } = LIMITS;
  assert.deepEqual(countsOf(rig.parts.block.receives), [39, most, 40 - most]);
});

test("of queries that take long a few are answered each turn, and those of a listener that pauses at once", async () => {
  const sound = new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 });
  const slow: SyncAnswerer = {
    answer: (queryClient, block, offset, length, isStream) => {
      const startMs = threadMs();
      while (threadMs() - startMs < LIMITS.udpSliceMs / 2);
      return sound.answer(queryClient, block, offset, length, isStream);
    },
    outcome: sound.outcome,
    takeDeferred: (block) => sound.takeDeferred(block),
  };
  for (const isPaused of [false, true]) {
    await using rig = listening({ answerer: slow, slice: new TimeSlice(LIMITS.udpSliceMs) });
    await using other = new UdpClient();
    const ids = Array.from({ length: 20 }, (_, at) => at);
    for (const id of ids) (id % 2 === 0 ? rig.client : other).send(aQuery({ id }), rig.port);
    const { flushes } = rig.parts.block;
    while (flushes.length === 0) await nextRound();
    assert.equal(flushes.length, 1);
    if (isPaused) rig.listener.pause(duplicate(rig.listener.fd));
    const received: number[] = [];
    for (const id of ids) received.push(readReply(await (id % 2 === 0 ? rig.client : other).receive()).id);
    assert.deepEqual(received, ids);
    assert.equal(flushes.length, 5);
  }
});

test("every client gets its own answer", async () => {
  await using rig = listening();
  await using other = new UdpClient();
  sendNow(rig, aQuery({ id: 1 }));
  other.send(aQuery({ id: 2 }), rig.port);
  sendNow(rig, aQuery({ id: 3 }));
  assert.equal(readReply(await other.receive()).id, 2);
  assert.deepEqual([readReply(await rig.client.receive()).id, readReply(await rig.client.receive()).id], [1, 3]);
});

test("upstream replies go to the right client, as they arrive, beside immediate ones", async () => {
  await using rig = listening();
  await using other = new UdpClient();
  sendNow(rig, aQuery({ id: 1, name: "slow" }));
  other.send(aQuery({ id: 2, name: "fast" }), rig.port);
  sendNow(rig, aQuery({ id: 3 }));
  assert.equal(readReply(await rig.client.receive()).id, 3);
  await rig.parts.upstream.until(2);
  rig.parts.upstream.answer(1);
  assert.equal(readReply(await other.receive()).id, 2);
  rig.parts.upstream.answer(0);
  assert.equal(readReply(await rig.client.receive()).id, 1);
});

test(
  "a query from port 0 is dropped, first or between others, and the others are answered",
  { skip: !ROOT },
  async () => {
    await using rig = listening();
    sendFromPortZero(rig.port, aQuery({ id: 1 }));
    sendNow(rig, aQuery({ id: 2 }));
    sendFromPortZero(rig.port, aQuery({ id: 3 }));
    sendNow(rig, aQuery({ id: 4 }));
    assert.deepEqual([readReply(await rig.client.receive()).id, readReply(await rig.client.receive()).id], [2, 4]);
    const { ignored, queries, unsent } = rig.queryClient.counters;
    assert.deepEqual({ ignored, queries, unsent }, { ignored: 2, queries: 2, unsent: 0 });
  },
);

test("an internal error in one query costs that query alone", async () => {
  const sound = new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 });
  const answerer: SyncAnswerer = {
    answer: (queryClient, block, offset, length, isStream) => {
      if (block.readUInt16BE(offset) === 2) throw new Error("an internal error");
      return sound.answer(queryClient, block, offset, length, isStream);
    },
    outcome: sound.outcome,
    takeDeferred: (block) => sound.takeDeferred(block),
  };
  await using rig = listening({ answerer });
  for (const id of [1, 2, 3]) sendNow(rig, aQuery({ id }));
  assert.deepEqual([readReply(await rig.client.receive()).id, readReply(await rig.client.receive()).id], [1, 3]);
  assert.deepEqual([rig.parts.defects.length, rig.queryClient.counters.failed], [1, 1]);
});

test("a query that is too long is cut, however it was received", async () => {
  await using rig = listening({ queryBytesMax: LIMITS.udpQueryBytesStrict });
  const fits = padded(LIMITS.udpQueryBytesStrict - padded(0).length);
  const tooLong = padded(fits.length - padded(0).length + 1);
  assert.deepEqual([fits.length, tooLong.length], [512, 513]);
  for (const query of [tooLong, fits, tooLong]) sendNow(rig, query);
  const replies = [await rig.client.receive(), await rig.client.receive(), await rig.client.receive()].map(readReply);
  assert.deepEqual(
    replies.map(({ rcode, counts }) => [rcode, counts[0]]),
    [
      [1, 1],
      [0, 1],
      [1, 1],
    ],
  );
});

test("an empty packet is dropped, and the next one answered", async () => {
  await using rig = listening();
  for (const message of [Buffer.alloc(0), aQuery({ id: 2 }), Buffer.alloc(0), aQuery({ id: 4 })]) sendNow(rig, message);
  assert.deepEqual([readReply(await rig.client.receive()).id, readReply(await rig.client.receive()).id], [2, 4]);
  assert.equal(rig.queryClient.counters.ignored, 2);
});

test("a listener that is closed while its batch is answered sends nothing, even if its descriptor was reused", async () => {
  let fd = -1;
  let newSockets: readonly number[] = [];
  const sound = new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 });
  const answerer: SyncAnswerer = {
    answer: (queryClient, block, offset, length, isStream) => {
      if (block.readUInt16BE(offset) === 3) {
        rig.listener.close();
        // The kernel assigns the lowest free number: sooner or later that of the closed socket.
        newSockets = Array.from({ length: 30 }, () => bindUdp().fd);
      }
      return sound.answer(queryClient, block, offset, length, isStream);
    },
    outcome: sound.outcome,
    takeDeferred: (block) => sound.takeDeferred(block),
  };
  const rig = listening({ answerer });
  fd = rig.fd;
  for (const id of [1, 2, 3, 4]) sendNow(rig, aQuery({ id, name: id === 1 ? "slow" : "web" }));
  await rig.parts.upstream.until(1);
  assert.ok(newSockets.includes(fd), "another socket has the number now");
  // A later reply finds no listener either. What the new owner of the descriptor sends arrives first.
  rig.parts.upstream.answer(0);
  sendTo(fd, Buffer.from("the new owner"), sockaddr(LOOPBACK, rig.client.port));
  assert.equal((await rig.client.receive()).toString(), "the new owner");
  assert.deepEqual(
    [rig.parts.block.flushes.length, rig.queryClient.counters.unsent, rig.queryClient.counters.queries],
    [0, 0, 3],
  );
  rig.listener.close();
  for (const each of newSockets) closeSync(each);
  await rig.client[Symbol.asyncDispose]();
});

test("the batch of one listener has nothing of another's that was closed before", async () => {
  const parts = udpParts();
  await using first = listening({}, parts);
  await using second = listening({}, parts);
  sendNow(first, aQuery({ id: 1 }));
  assert.equal(readReply(await first.client.receive()).id, 1);
  first.listener.close();
  sendNow(second, aQuery({ id: 2 }));
  assert.equal(readReply(await second.client.receive()).id, 2);
});

test("an answer larger than UDP can carry is counted as unsent", async () => {
  await using rig = listening();
  sendNow(rig, aQuery({ id: 1, name: "slow" }));
  await rig.parts.upstream.until(1);
  rig.parts.upstream.answer(0, Buffer.concat([aReplyTo(aQuery({ id: 1 })), Buffer.alloc(65_535)]));
  assert.equal(rig.queryClient.counters.unsent, 1);
});

// Its descriptor's number may be another socket's a moment later.
test("replies to forwarded queries leave before their listener is closed", async () => {
  await using rig = listening();
  for (const id of [1, 2]) sendNow(rig, aQuery({ id, name: "slow" }));
  await rig.parts.upstream.until(2);
  for (const index of [0, 1]) rig.parts.upstream.answer(index);
  rig.listener.close();
  for (const id of [1, 2]) assert.equal((await rig.client.receive()).readUInt16BE(0), id);
});

function padded(bytes: number): Buffer {
  return aQuery({ opt: { options: [[12, Buffer.alloc(bytes)]] } });
}

type Rig = AsyncDisposable & {
  readonly fd: number;
  readonly port: number;
  readonly queryClient: Client;
  readonly parts: UdpTestParts;
  readonly listener: UdpListener;
  readonly client: UdpClient;
};

function listening(overrides: Parameters<typeof udpParts>[0] = {}, parts = udpParts(overrides)): Rig {
  const { fd, port } = bindUdp();
  const queryClient = clientOnOneNetwork();
  const client = new UdpClient();
  const listener = new UdpListener(fd, "127.0.0.1", packetOwnersOf(queryClient), parts);
  const dispose = async (): Promise<void> => {
    listener.close();
    await client[Symbol.asyncDispose]();
    assert.equal(parts.defects.length, queryClient.counters.failed);
  };
  return { fd, port, queryClient, parts, listener, client, [Symbol.asyncDispose]: dispose };
}

function sendNow(rig: Rig, message: Buffer): void {
  rig.client.send(message, rig.port);
}

// A raw socket can use any source port, as a container with NET_RAW can.
function sendFromPortZero(port: number, message: Buffer): void {
  const raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
  const header = Buffer.concat([u16(0), u16(port), u16(8 + message.length), u16(0)]);
  assert.ok(sendTo(raw, Buffer.concat([header, message]), sockaddr(LOOPBACK, 0)) > 0);
  closeSync(raw);
}

/** Of the calls that received something. */
function countsOf(receives: readonly { readonly count: number }[]): number[] {
  return receives.flatMap(({ count }) => (count === 0 ? [] : count));
}
