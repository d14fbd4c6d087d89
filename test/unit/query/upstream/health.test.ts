// Proves whose word counts about a server: what one container sees is its own affair, where others ask that server, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { Health } from "../../../../src/query/upstream/health.ts";

const [ATTACKER, VICTIM] = [1, 2];
const SPAN_MS = LIMITS.downAfterMs;

test("silence that one container sees has the server down for it alone, where another one asks it, too", () => {
  const { health, changes } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER);
  assert.deepEqual(
    [health.checkIsDown(SPAN_MS, ATTACKER), health.checkIsDown(SPAN_MS, VICTIM), health.checkIsDown(SPAN_MS)],
    [true, false, false],
  );
  assert.deepEqual(changes, ["down: it does not answer (seen by one container)"]);
});

test("a question of another container that has just been asked proves nothing yet", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= 2 * SPAN_MS; at += 100) health.recordQuery(at, ATTACKER);
  health.recordQuery(2 * SPAN_MS, VICTIM);
  assert.equal(health.checkIsDown(2 * SPAN_MS + 100, VICTIM), false);
  assert.equal(health.checkIsDown(3 * SPAN_MS, VICTIM), true, "it has been waited for as long as that");
  assert.equal(health.checkIsDown(3 * SPAN_MS), true);
});

test("where nobody else asks, one container is everybody", () => {
  const { health, changes } = watched();
  for (let count = 0; count < LIMITS.downAfterQueries; count++) health.recordQuery(0, VICTIM);
  assert.equal(health.checkIsDown(SPAN_MS), true);
  assert.deepEqual(changes, ["down: it does not answer"]);
});

test("any answer to anybody ends the suspicion", () => {
  const { health, changes } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), true);
  answer(health, VICTIM, SPAN_MS);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), false);
  assert.equal(changes.at(-1), "up: it answers again");
});

test("failures of one container's names do not have it down for others, and those of several do", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  for (let count = 0; count < 100; count++) fail(health, ATTACKER, count);
  assert.deepEqual([health.checkIsDown(100, ATTACKER), health.checkIsDown(100, VICTIM)], [true, false]);
  for (let count = 0; count < LIMITS.downAfterErrorsOthers; count++) fail(health, VICTIM, 200);
  assert.deepEqual([health.checkIsDown(300, VICTIM), health.checkIsDown(300)], [true, true]);
});

test("a server that cannot be reached is down for everybody", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  health.recordQuery(1, ATTACKER);
  health.recordUnreachable(1, "ECONNREFUSED");
  assert.equal(health.checkIsDown(1, VICTIM), true);
});

test("a server that is down for one is on trial for that one", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), true);
  const laterMs = SPAN_MS + LIMITS.trialMsFirst;
  assert.deepEqual([health.takeTrial(laterMs, VICTIM), health.takeTrial(laterMs, ATTACKER)], [false, true]);
});

function watched(): { readonly health: Health; readonly changes: string[] } {
  const changes: string[] = [];
  return { health: new Health((isUp, reason) => changes.push(`${isUp ? "up" : "down"}: ${reason}`)), changes };
}

function answer(health: Health, by: number, atMs: number): void {
  health.recordQuery(atMs, by);
  health.recordAnswer(atMs, 1, true, by);
}

function fail(health: Health, by: number, atMs: number): void {
  health.recordQuery(atMs, by);
  health.recordAnswer(atMs, 1, false, by);
}
