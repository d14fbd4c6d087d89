// Proves one TCP connection on real sockets: queries in any segmentation, answers in any order, and every way to end.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { withLength } from "../../../../src/base/lib/stream-reader.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../../src/query/answer.ts";
import type { SyncAnswerer } from "../../../../src/query/ports.ts";
import { aQuery } from "../../../support/scripted/builders.ts";
import { TcpClient } from "../../support/loopback.ts";
import { WEB } from "../../support/listening.ts";
import { addressesIn, readReply } from "../../support/reply.ts";
import { tcpListening } from "../../support/tcp-rig.ts";

test("several queries in one segment are answered in order", async () => {
  await using rig = await tcpListening();
  await rig.client.send(aQuery({ id: 1 }), aQuery({ id: 2 }), aQuery({ id: 3 }));
  for (const id of [1, 2, 3]) {
    const reply = readReply(await rig.client.receive());
    assert.deepEqual([reply.id, addressesIn(reply)], [id, [WEB]]);
  }
});

test("a query that arrives byte by byte is answered when it is complete", async () => {
  await using rig = await tcpListening();
  for (const byte of withLength(aQuery({ id: 7 }))) await rig.client.sendRaw(Buffer.of(byte));
  assert.equal(readReply(await rig.client.receive()).id, 7);
});

test("upstream replies are sent as they arrive, and local ones before them", async () => {
  await using rig = await tcpListening();
  await rig.client.send(aQuery({ id: 1, name: "slow" }), aQuery({ id: 2, name: "slow" }), aQuery({ id: 3 }));
  assert.equal(readReply(await rig.client.receive()).id, 3);
  await rig.upstream.until(2);
  rig.upstream.answer(1);
  assert.equal(readReply(await rig.client.receive()).id, 2);
  rig.upstream.answer(0);
  assert.equal(readReply(await rig.client.receive()).id, 1);
});

test("with one at a time, a query waits until the one before it is answered", async () => {
  await using rig = await tcpListening({ pipelinedMax: 1 });
  await rig.client.send(aQuery({ id: 1, name: "slow" }), aQuery({ id: 2 }), aQuery({ id: 3, name: "slow" }));
  await rig.upstream.until(1);
  await rig.client.send(aQuery({ id: 4 }));
  rig.upstream.answer(0);
  assert.equal(readReply(await rig.client.receive()).id, 1);
  assert.equal(readReply(await rig.client.receive()).id, 2);
  await rig.upstream.until(2);
  assert.equal(rig.upstream.length, 2);
  rig.upstream.answer(1);
  assert.equal(readReply(await rig.client.receive()).id, 3);
  assert.equal(readReply(await rig.client.receive()).id, 4);
});

test("queries in progress are limited, and the others follow when one is answered", async () => {
  await using rig = await tcpListening({ pipelinedMax: 3 });
  await rig.client.send(...Array.from({ length: 5 }, (_, id) => aQuery({ id, name: "slow" })));
  await rig.upstream.until(3);
  assert.equal(rig.upstream.length, 3);
  rig.upstream.answer(2);
  assert.equal(readReply(await rig.client.receive()).id, 2);
  await rig.upstream.until(4);
  for (const index of [3, 0, 1]) rig.upstream.answer(index);
  for (const id of [3, 0, 1]) assert.equal(readReply(await rig.client.receive()).id, id);
  await rig.upstream.until(5);
});

test("a message without an answer is skipped, and the next one is answered", async () => {
  await using rig = await tcpListening();
  await rig.client.send(aQuery({ id: 1, flags: 0x8000 }), Buffer.alloc(0), Buffer.alloc(5), aQuery({ id: 2 }));
  assert.equal(readReply(await rig.client.receive()).id, 2);
  assert.equal(rig.queryClient.counters.ignored, 3);
});

test("as many queries as a client sends at once are answered, and the connection stays open", async () => {
  await using rig = await tcpListening();
  await rig.client.send(...Array.from({ length: 5000 }, (_, id) => aQuery({ id })));
  for (let id = 0; id < 5000; id++) assert.equal(readReply(await rig.client.receive()).id, id);
  await rig.client.send(aQuery({ id: 5000 }));
  assert.equal(readReply(await rig.client.receive()).id, 5000);
});

test("of many queries that are forwarded, the next are read as answers are given", async () => {
  await using rig = await tcpListening();
  await rig.client.send(...Array.from({ length: 300 }, (_, id) => aQuery({ id, name: "slow" })));
  for (let id = 0; id < 300; id++) {
    await rig.upstream.until(id + 1);
    assert.ok(rig.upstream.length <= id + LIMITS.tcpPipelined, `${rig.upstream.length} after ${id} answers`);
    rig.upstream.answer(id);
    assert.equal(readReply(await rig.client.receive()).id, id);
  }
});

const STRICT = { pipelinedMax: 1, queriesMax: LIMITS.tcpQueriesStrict };

test("in strict mode the connection is closed after 128 queries, all answered", async () => {
  await using rig = await tcpListening(STRICT);
  await rig.client.send(...Array.from({ length: 130 }, (_, id) => aQuery({ id })));
  for (let id = 0; id < 128; id++) assert.equal(readReply(await rig.client.receive()).id, id);
  assert.equal(await rig.client.gone, "end");
  assert.equal(rig.queryClient.counters.queries, 128);
});

test("the last of 128 queries in strict mode is answered although it is forwarded", async () => {
  await using rig = await tcpListening(STRICT);
  const before = Array.from({ length: 127 }, (_, id) => aQuery({ id }));
  await rig.client.send(...before, aQuery({ id: 999, name: "slow" }));
  for (const { length } = before; rig.queryClient.counters.local < length;) await rig.client.receive();
  await rig.upstream.until(1);
  rig.upstream.answer(0);
  let last = await rig.client.receive();
  while (readReply(last).id !== 999) last = await rig.client.receive();
  assert.equal(await rig.client.gone, "end");
});

for (const pipelinedMax of [1, LIMITS.tcpPipelined]) {
  test(`a client that has closed its side still gets its answers (${pipelinedMax} at a time)`, async () => {
    await using rig = await tcpListening({ pipelinedMax });
    await rig.client.send(aQuery({ id: 1, name: "slow" }), aQuery({ id: 2, name: "slow" }), aQuery({ id: 3 }));
    rig.client.socket.end();
    await rig.upstream.until(1);
    rig.upstream.answer(0);
    await rig.upstream.until(2);
    rig.upstream.answer(1);
    const ids = new Set<number>();
    while (ids.size < 3) ids.add(readReply(await rig.client.receive()).id);
    assert.deepEqual(ids, new Set([1, 2, 3]));
    assert.equal(await rig.client.gone, "end");
  });
}

test("a client that closes its side within a query is disconnected", async () => {
  await using rig = await tcpListening();
  await rig.client.sendRaw(Buffer.of(0, 50, 1, 2, 3));
  rig.client.socket.end();
  assert.equal(await rig.client.gone, "end");
  assert.equal(rig.queryClient.counters.queries, 0);
});

test("the answer for a client that has disconnected is dropped", async () => {
  await using rig = await tcpListening();
  await rig.client.send(aQuery({ id: 1, name: "slow" }));
  await rig.upstream.until(1);
  rig.client.socket.resetAndDestroy();
  await rig.until(() => rig.connections.count === 0);
  rig.upstream.answer(0);
  await using other = await TcpClient.open(rig.port);
  await other.send(aQuery({ id: 2 }));
  assert.equal(readReply(await other.receive()).id, 2);
});

test("an internal error in one query closes its connection, and no other", async () => {
  const answerer = answererThat((id) => {
    if (id === 2) throw new Error("an internal error");
  });
  await using rig = await tcpListening({ answerer });
  await using other = await TcpClient.open(rig.port);
  await rig.client.send(aQuery({ id: 2 }));
  assert.notEqual(await rig.client.gone, undefined);
  await other.send(aQuery({ id: 3 }));
  assert.equal(readReply(await other.receive()).id, 3);
  assert.deepEqual([rig.defects.length, rig.queryClient.counters.failed], [1, 1]);
});

test("the next query is not answered from within the reply to the one before it", async () => {
  const answered: number[] = [];
  const answerer = answererThat((id) => answered.push(id));
  await using rig = await tcpListening({ answerer, pipelinedMax: 1 });
  await rig.client.send(aQuery({ id: 1, name: "slow" }), aQuery({ id: 2 }));
  await rig.upstream.until(1);
  rig.upstream.answer(0);
  assert.deepEqual(answered, [1]);
  for (const id of [1, 2]) assert.equal(readReply(await rig.client.receive()).id, id);
  assert.deepEqual(answered, [1, 2]);
});

// An answerer that works, and calls a hook with the id of each query first.
function answererThat(act: (id: number) => void): SyncAnswerer {
  const sound = new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 });
  return {
    answer: (queryClient, block, offset, length, isStream) => {
      act(block.readUInt16BE(offset));
      return sound.answer(queryClient, block, offset, length, isStream);
    },
    outcome: sound.outcome,
    takeDeferred: (block) => sound.takeDeferred(block),
  };
}
