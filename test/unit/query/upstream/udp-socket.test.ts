// Proves when a socket to a server calls back, and what it sends.

import assert from "node:assert/strict";
import { test } from "node:test";

import { MESSAGE_BYTES_MAX } from "../../../../src/base/dns/header.ts";
import { LIMITS } from "../../../../src/base/limits.ts";
import { MessageBlock } from "../../../../src/kernel/message-block.ts";
import { PacketBatch } from "../../../../src/kernel/packet-batch.ts";
import { RandomIds } from "../../../../src/base/lib/random-ids.ts";
import type { Server } from "../../../../src/base/model/view.ts";
import { UpstreamSocket, ReplyBudget } from "../../../../src/query/upstream/udp-socket.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { waitFor } from "../../../support/rig/wait.ts";
import { callbackReturns } from "../../support/callback.ts";
import { dialHere } from "../../support/loopback.ts";
import { UdpUpstream, closedUdpServer } from "../../support/upstreams.ts";

class Rig implements Disposable {
  readonly reasons: string[] = [];
  readonly #socket: UpstreamSocket;

  constructor(server: Server) {
    const block = new MessageBlock(2, 512);
    const budget = new ReplyBudget(LIMITS.upstreamBatch);
    const recordSocketError = (_suspicion: number, reason: string): unknown => this.reasons.push(reason);
    const ids = new RandomIds();
    const parts = { block, batch: new PacketBatch(), budget, ids, now: () => performance.now() };
    this.#socket = new UpstreamSocket(dialHere(server, "udp"), 4, parts, { suspicion: 0, recordSocketError });
  }

  query(name: string, message = aQuery({ name })): void {
    const other = (): void => assert.fail("no reply is expected");
    const onUnreachable = (reason: string): unknown => this.reasons.push(`${name}: ${reason}`);
    const exchange = { message, questionEnd: message.length, clientNumber: 1, onUnreachable };
    this.#socket.send({ ...exchange, onReply: other, onForgery: other }, performance.now());
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

const UNREACHABLE = ["ECONNREFUSED", "first: ECONNREFUSED", "second: ECONNREFUSED"];

test("an unreachable server is reported to all waiting queries, after the caller has returned", async () => {
  using rig = new Rig(await closedUdpServer());
  rig.query("first");
  await callbackReturns();
  // The kernel reports it at the next send.
  rig.query("second");
  assert.deepEqual(rig.reasons, []);
  await callbackReturns();
  await Promise.resolve();
  assert.deepEqual(rig.reasons, UNREACHABLE);
});

test("so it is where the queries leave together", async () => {
  using rig = new Rig(await closedUdpServer());
  rig.query("first");
  rig.query("second");
  await waitFor("the kernel to report it", () => rig.reasons[0]);
  assert.deepEqual(rig.reasons, UNREACHABLE);
});

test("a query that is sent twice leaves with the id that it had each time", async () => {
  await using upstream = new UdpUpstream(() => undefined);
  using rig = new Rig(upstream.server);
  const message = aQuery({ name: "twice" });
  const ids: number[] = [];
  for (let time = 0; time < 2; time++) {
    rig.query("twice", message);
    ids.push(message.readUInt16BE(0));
  }
  await upstream.receives(2);
  assert.deepEqual(
    upstream.queries.map((query) => query.readUInt16BE(0)),
    ids,
  );
});

// Its descriptor's number may be another socket's a moment later.
test("a query leaves before its socket is closed", async () => {
  await using upstream = new UdpUpstream(() => undefined);
  const rig = new Rig(upstream.server);
  rig.query("last");
  rig[Symbol.dispose]();
  await upstream.receives(1);
});

test("long replies that come together are taken in several turns, short ones in one", async () => {
  for (const [bytes, mostInTurn] of [
    [20 * LIMITS.upstreamReplyBytes, 4],
    [500, 16],
  ] as const) {
    const inTurn = new Map<number, number>();
    let turn = 0;
    let received = 0;
    const count = 16;
    const replies: (() => void)[] = [];
    await using upstream = new UdpUpstream((query, reply) =>
      replies.push(() => reply(Buffer.concat([aReplyTo(query, 0), Buffer.alloc(bytes)]))),
    );
    const block = new MessageBlock(LIMITS.upstreamBatch, MESSAGE_BYTES_MAX);
    const budget = new ReplyBudget(LIMITS.upstreamBatch);
    const parts = { block, batch: new PacketBatch(), budget, ids: new RandomIds(), now: () => performance.now() };
    const fd = dialHere(upstream.server, "udp");
    const socket = new UpstreamSocket(fd, 4, parts, { suspicion: 0, recordSocketError: () => assert.fail() });
    for (let number = 0; number < count; number++) {
      const message = aQuery({ name: `n${number}` });
      const onReply = (): void => {
        received++;
        inTurn.set(turn, (inTurn.get(turn) ?? 0) + 1);
      };
      const other = (): void => assert.fail();
      const rest = { onReply, onForgery: other, onUnreachable: other };
      socket.send({ message, questionEnd: message.length, clientNumber: 1, ...rest }, performance.now());
    }
    parts.batch.flush();
    await upstream.receives(count);
    // All leave in one turn.
    for (const reply of replies) reply();
    const nextTurn = (): void => {
      turn++;
      if (received < count) setImmediate(nextTurn);
    };
    setImmediate(nextTurn);
    await waitFor("the replies", () => (received === count ? true : undefined));
    const most = Math.max(...inTurn.values());
    assert.ok(most <= mostInTurn && (bytes > 1000 || most > 4), `${most} replies of ${bytes} bytes in a turn`);
    socket.close();
  }
});
