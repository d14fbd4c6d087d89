// Proves that queries leave a queue in the order in which they came, and that those that were cancelled take no place in it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

import { type QueuedQuery, ServerQueue } from "../../../../src/query/upstream/server-queue.ts";

function aQueued(): QueuedQuery {
  return { older: undefined, newer: undefined, isOutstanding: false, sentMs: 0, epoch: 0, send: undefined };
}

// A queue that is full, with what it has out.
function full(): { readonly queue: ServerQueue; readonly out: QueuedQuery[] } {
  const queue = new ServerQueue(1, () => 0);
  const out: QueuedQuery[] = [];
  for (let query = aQueued(); queue.tryEnter(query, 0); query = aQueued()) out.push(query);
  return { queue, out };
}

test("what waits is sent in its order, but for what was cancelled", async () => {
  const { queue, out } = full();
  const sent: number[] = [];
  const waiting = Array.from({ length: 6 }, aQueued);
  for (const [index, query] of waiting.entries()) queue.wait(query, () => sent.push(index));
  // The first, one in the middle, and the last; one of them twice.
  for (const index of [0, 3, 5, 3]) queue.cancel(waiting[index] as QueuedQuery);
  assert.equal(queue.tryEnter(aQueued(), 0), false, "others wait already");
  for (const query of out) queue.leave(query);
  await turn();
  assert.deepEqual(sent, [1, 2, 4]);
  for (const index of [1, 2, 4]) queue.leave(waiting[index] as QueuedQuery);
  assert.equal(queue.tryEnter(aQueued(), 0), true);
});

test("a queue in which everything was cancelled is empty", () => {
  const { queue, out } = full();
  const waiting = Array.from({ length: 3 }, aQueued);
  for (const query of waiting) queue.wait(query, () => assert.fail("it was cancelled"));
  for (const query of waiting.toReversed()) queue.cancel(query);
  queue.leave(out[0] as QueuedQuery);
  assert.equal(queue.tryEnter(aQueued(), 0), true);
});
