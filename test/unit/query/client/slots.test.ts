// Proves what one container may ask upstream at once: so many slots, so many waiting, and each for so long.

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { Slots } from "../../../../src/query/client/slots.ts";

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
});

test("a free slot is taken at once", () => {
  const slots = new Slots();
  const told: string[] = [];
  slots.take(
    () => told.push("begun"),
    () => told.push("refused"),
  );
  assert.deepEqual(told, ["begun"]);
  assert.equal(slots.taken, 1);
  slots.release();
  assert.equal(slots.taken, 0);
});

test("whoever comes when all slots are taken waits, and begins when one is given back", async () => {
  const { slots, told } = full();
  wait(slots, told, "first");
  wait(slots, told, "second");
  assert.deepEqual(told, []);
  slots.release();
  // Not from inside the call that gave the slot back.
  assert.deepEqual(told, []);
  await Promise.resolve();
  assert.deepEqual(told, ["first begun"]);
  assert.equal(slots.taken, LIMITS.forwardSlots);
  slots.release();
  await Promise.resolve();
  assert.deepEqual(told, ["first begun", "second begun"]);
});

test("a slot that was given on is not there for the next one who comes", async () => {
  const { slots, told } = full();
  wait(slots, told, "first");
  slots.release();
  wait(slots, told, "late");
  await Promise.resolve();
  assert.deepEqual(told, ["first begun"]);
});

test("whoever waits too long is refused, once, and takes no slot later", async () => {
  const { slots, told } = full();
  wait(slots, told, "first");
  mock.timers.tick(LIMITS.forwardWaitMs - 1);
  assert.deepEqual(told, []);
  mock.timers.tick(1);
  assert.deepEqual(told, ["first refused"]);
  slots.release();
  await Promise.resolve();
  assert.deepEqual(told, ["first refused"]);
  assert.equal(slots.taken, LIMITS.forwardSlots - 1);
});

test("whoever began is not refused when the time is over", async () => {
  const { slots, told } = full();
  wait(slots, told, "first");
  slots.release();
  await Promise.resolve();
  mock.timers.tick(LIMITS.forwardWaitMs * 2);
  assert.deepEqual(told, ["first begun"]);
});

test("one more than may wait is refused at once", () => {
  const { slots, told } = full();
  for (let index = 0; index < LIMITS.forwardWaiting; index++) wait(slots, [], "waiting");
  wait(slots, told, "one more");
  assert.deepEqual(told, ["one more refused"]);
});

test("all slots that were taken can be given back, whatever came between", async () => {
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

function full(): { readonly slots: Slots; readonly told: string[] } {
  const slots = new Slots();
  for (let index = 0; index < LIMITS.forwardSlots; index++) slots.take(() => undefined, assert.fail);
  assert.equal(slots.taken, LIMITS.forwardSlots);
  return { slots, told: [] };
}

function wait(slots: Slots, told: string[], who: string): void {
  slots.take(
    () => told.push(`${who} begun`),
    () => told.push(`${who} refused`),
  );
}
