// Proves when a socket to a server calls back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { MessageBlock } from "../../../../src/kernel/message-block.ts";
import { RandomIds } from "../../../../src/base/lib/random-ids.ts";
import { TurnBudget } from "../../../../src/query/upstream/turn-budget.ts";
import { UpstreamSocket } from "../../../../src/query/upstream/udp-socket.ts";
import { aQuery } from "../../../support/scripted/builders.ts";
import { dialHere } from "../../support/loopback.ts";
import { closedUdpServer } from "../../support/upstreams.ts";

test("an unreachable server is reported to all waiting queries, after the caller has returned", async () => {
  const block = new MessageBlock(2, 512);
  const budget = new TurnBudget(LIMITS.upstreamBatch);
  const reasons: string[] = [];
  const recordSocketError = (_suspicion: number, reason: string): unknown => reasons.push(reason);
  const parts = { block, budget, ids: new RandomIds(), now: () => performance.now() };
  const errors = { suspicion: 0, recordSocketError };
  const socket = new UpstreamSocket(dialHere(await closedUdpServer(), "udp"), 4, parts, errors);
  const query = (name: string): void => {
    const message = aQuery({ name });
    const other = (): void => assert.fail("the server is unreachable");
    const onUnreachable = (reason: string): unknown => reasons.push(`${name}: ${reason}`);
    socket.send({
      message,
      questionEnd: message.length,
      clientNumber: 1,
      onReply: other,
      onUnreachable,
      onForgery: other,
    });
  };
  // The kernel reports it at the next send.
  query("first");
  query("second");
  assert.deepEqual(reasons, []);
  await Promise.resolve();
  assert.deepEqual(reasons, ["ECONNREFUSED", "first: ECONNREFUSED", "second: ECONNREFUSED"]);
  socket.close();
});
