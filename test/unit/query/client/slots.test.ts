// Proves the limits of one container's concurrent upstream queries: number of slots, length of the queue, and waiting
// time.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";

import { LIMITS } from "../../../../src/base/limits.ts";
import { Slots } from "../../../../src/query/client/slots.ts";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => mock.timers.reset());

test("a free slot is taken at once", () => {
  const slots = new Slots();
  const events: string[] = [];
  slots.take(
    () => events.push("begun"),
    () => events.push("refused"),
  );
  assert.deepEqual(events, ["begun"]);
  assert.equal(slots.taken, 1);
  slots.release();
  assert.equal(slots.taken, 0);
});

test("a query that finds no free slot waits, and begins when one is released", async () => {
  const { slots, events } = full();
  wait(slots, events, "first");
  wait(slots, events, "second");
  assert.deepEqual(events, []);
  slots.release();
  // Not within the call that released the slot.
  assert.deepEqual(events, []);
  await Promise.resolve();
  assert.deepEqual(events, ["first begun"]);
  assert.equal(slots.taken, LIMITS.forwardSlots);
  slots.release();
  await Promise.resolve();
  assert.deepEqual(events, ["first begun", "second begun"]);
});

test("a slot that was handed to a waiting query is not free for the next one", async () => {
  const { slots, events } = full();
  wait(slots, events, "first");
  slots.release();
  wait(slots, events, "late");
  await Promise.resolve();
  assert.deepEqual(events, ["first begun"]);
});

test("a query that waits too long is refused, once, and takes no slot later", async () => {
  const { slots, events } = full();
  wait(slots, events, "first");
  mock.timers.tick(LIMITS.forwardWaitMs - 1);
  assert.deepEqual(events, []);
  mock.timers.tick(1);
  await twoRounds();
  assert.deepEqual(events, ["first refused"]);
  slots.release();
  await Promise.resolve();
  assert.deepEqual(events, ["first refused"]);
  assert.equal(slots.taken, LIMITS.forwardSlots - 1);
});

test("where the process has stood still, queries that end in the same turn make room for those that wait", async () => {
  const { slots, events } = full();
  wait(slots, events, "first");
  // As the timeouts of queries with a slot: their timers were due before.
  setTimeout(() => setImmediate(() => slots.release()), LIMITS.forwardWaitMs - 1);
  mock.timers.tick(LIMITS.forwardWaitMs * 2);
  await twoRounds();
  assert.deepEqual(events, ["first begun"]);
  assert.equal(slots.taken, LIMITS.forwardSlots);
});

test("a query that has begun is not refused when the waiting time ends", async () => {
  const { slots, events } = full();
  wait(slots, events, "first");
  slots.release();
  await Promise.resolve();
  mock.timers.tick(LIMITS.forwardWaitMs * 2);
  await twoRounds();
  assert.deepEqual(events, ["first begun"]);
});

test("one more query than the queue holds is refused at once", () => {
  const { slots, events } = full();
  for (let index = 0; index < LIMITS.forwardWaiting; index++) wait(slots, [], "waiting");
  wait(slots, events, "one more");
  assert.deepEqual(events, ["one more refused"]);
});

test("all slots can be released, whatever happened in between", async () => {
  const { slots } = full();
  let begun = LIMITS.forwardSlots;
  for (let index = 0; index < 100; index++)
    slots.take(
      () => begun++,
      () => undefined,
    );
  for (let released = 0; released < begun; released++) {
    slots.release();
    await Promise.resolve();
  }
  assert.deepEqual([begun, slots.taken], [LIMITS.forwardSlots + 100, 0]);
});

async function twoRounds(): Promise<void> {
  await nextRound();
  await nextRound();
}

function full(): { readonly slots: Slots; readonly events: string[] } {
  const slots = new Slots();
  for (let index = 0; index < LIMITS.forwardSlots; index++) slots.take(() => undefined, assert.fail);
  assert.equal(slots.taken, LIMITS.forwardSlots);
  return { slots, events: [] };
}

function wait(slots: Slots, events: string[], name: string): void {
  slots.take(
    () => events.push(`${name} begun`),
    () => events.push(`${name} refused`),
  );
}
