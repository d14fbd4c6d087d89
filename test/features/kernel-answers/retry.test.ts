/**
 * KernelRetry: pauses between tries of the kernel's answers in one namespace.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { KernelRetry } from "../../../src/features/kernel-answers/namespace-answers.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The pause after each of so many failures, each at the moment of the next try. */
function pausesOf(retry: KernelRetry, failures: number, stepMs: number): number[] {
  let nowMs = 0;
  return Array.from({ length: failures }, () => {
    retry.fail(nowMs);
    const failedMs = nowMs;
    while (!retry.isDue(nowMs)) nowMs += stepMs;
    return nowMs - failedMs;
  });
}

test("pauses double from a minute up to an hour", () => {
  const minutes = pausesOf(new KernelRetry(), 8, MINUTE / 2).map((ms) => ms / MINUTE);
  assert.deepEqual(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
});

test("after a change the pause is shorter, but grows with the failures before", () => {
  const retry = new KernelRetry();
  const pauses = [1, 2, 3, 4, 5].map((failure) => {
    retry.fail(failure);
    retry.hurry();
    let pauseMs = 0;
    while (!retry.isDue(failure + pauseMs)) pauseMs += 500;
    return pauseMs;
  });
  assert.deepEqual(pauses, [0, 1_000, 2_000, 4_000, 8_000]);
  retry.fail(6);
  assert.equal(retry.isDue(6 + 15 * MINUTE), false, "a change counts for the failure before it only");
});

test("a failure long after the last one is the first again; an operator has it tried at once", () => {
  const retry = new KernelRetry();
  assert.equal(retry.isDue(0), true);
  for (const nowMs of [1, 2, 3]) retry.fail(nowMs);
  assert.equal(retry.isDue(3 + MINUTE), false);
  retry.fail(3 * HOUR);
  assert.equal(retry.isDue(3 * HOUR + MINUTE), true);
  retry.fail(3 * HOUR + MINUTE);
  retry.forget();
  assert.equal(retry.isDue(3 * HOUR + MINUTE), true);
});
