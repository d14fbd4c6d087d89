// Proves when a socket to a server calls back who asked.

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

test("that nobody is there is told to all who wait, after whoever asks has returned", async () => {
  const block = new MessageBlock(2, 512);
  const budget = new TurnBudget(LIMITS.upstreamBatch);
  const socket = new UpstreamSocket(dialHere(await closedUdpServer(), "udp"), 4, {
    block,
    budget,
    ids: new RandomIds(),
    now: () => performance.now(),
  });
  const told: string[] = [];
  const ask = (who: string): void => {
    const message = aQuery({ name: who });
    const other = (): void => assert.fail("nobody is there");
    const onUnreachable = (reason: string): unknown => told.push(`${who}: ${reason}`);
    socket.ask({
      message,
      questionEnd: message.length,
      clientNumber: 1,
      onReply: other,
      onUnreachable,
      onForgery: other,
    });
  };
  // The kernel tells it at the next send.
  ask("first");
  ask("second");
  assert.deepEqual(told, []);
  await Promise.resolve();
  assert.deepEqual(told, ["first: ECONNREFUSED", "second: ECONNREFUSED"]);
  socket.close();
});
