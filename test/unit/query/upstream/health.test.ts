// Proves whose observations count for a server: those of one container only for itself, if others use that server, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { Health } from "../../../../src/query/upstream/health.ts";

const [ATTACKER, VICTIM] = [1, 2];
const SPAN_MS = LIMITS.downAfterMs;

test("a server that is silent for one container is down for that one alone, if another one uses it, too", () => {
  const { health, changes } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER, at);
  assert.deepEqual(
    [health.checkIsDown(SPAN_MS, ATTACKER), health.checkIsDown(SPAN_MS, VICTIM), health.checkIsDown(SPAN_MS)],
    [true, false, false],
  );
  assert.deepEqual(changes, ["down: does not answer (observed by one container only)"]);
});

test("some late answers between quick ones do not make all of them late", () => {
  const { health } = watched();
  const answered = (count: number, tookMs: number): number | undefined => {
    for (let each = 0; each < count; each++) health.recordAnswer(0, tookMs);
    return health.leastMs;
  };
  assert.equal(answered(15, 1), undefined);
  for (let round = 0; round < 5; round++) {
    assert.ok((answered(6, 6_000) ?? 0) < 2_000);
    answered(10, 1);
  }
  assert.ok((answered(20, 6_000) ?? 0) > 4_000);
});

test("a query of another container that has just been sent proves nothing yet", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= 2 * SPAN_MS; at += 100) health.recordQuery(at, ATTACKER, at);
  health.recordQuery(2 * SPAN_MS, VICTIM, 0);
  assert.equal(health.checkIsDown(2 * SPAN_MS + 100, VICTIM), false);
  assert.equal(health.checkIsDown(3 * SPAN_MS, VICTIM), true, "it has been silent long enough");
  assert.equal(health.checkIsDown(3 * SPAN_MS), true);
});

test("if no other container uses the server, one container decides for all", () => {
  const { health, changes } = watched();
  for (let count = 0; count < LIMITS.downAfterQueries; count++) health.recordQuery(0, VICTIM, count);
  assert.equal(health.checkIsDown(SPAN_MS), true);
  assert.deepEqual(changes, ["down: does not answer"]);
});

test("any answer to any container ends the suspicion", () => {
  const { health, changes } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER, at);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), true);
  answer(health, VICTIM, SPAN_MS);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), false);
  assert.equal(changes.at(-1), "up: answers again");
});

test("one name that is asked for at once for several types is one sign of silence; another one, or trying again, is another", () => {
  const { health } = watched();
  const ask = (times: number, what: number): void => {
    for (let count = 0; count < times; count++) health.recordQuery(0, VICTIM, what);
  };
  ask(100, 7);
  assert.equal(health.checkIsDown(2 * SPAN_MS), false);
  ask(1, 8);
  health.recordRepeat();
  assert.equal(health.checkIsDown(2 * SPAN_MS), false);
  ask(1, 9);
  assert.equal(health.checkIsDown(2 * SPAN_MS), true);
});

test("errors bring no server down, and a quick one shows that a server is back", () => {
  const { health, changes } = watched();
  for (let count = 0; count < 100; count++) fail(health, VICTIM, count, 1);
  assert.deepEqual([health.checkIsDown(100), changes], [false, []]);
  health.recordUnreachable(100, "ECONNREFUSED");
  fail(health, VICTIM, 200, SPAN_MS);
  assert.equal(health.checkIsDown(200), true, "it takes so long where it cannot resolve anything");
  fail(health, VICTIM, 300, 1);
  assert.deepEqual(changes, ["down: ECONNREFUSED", "up: answers again"]);
});

test("a server that usually takes longer than a second is not silent after one", () => {
  const { health } = watched();
  for (let count = 0; count < 10; count++) answer(health, VICTIM, 0, 1_500);
  for (let count = 0; count < LIMITS.downAfterQueries; count++) health.recordQuery(0, VICTIM, count);
  assert.equal(health.checkIsDown(1_500), false);
  assert.equal(health.checkIsDown(LIMITS.downAfterMsSlow), true);
});

test("only what is seen by one container alone is no fault of transport", () => {
  const transports: boolean[] = [];
  const health = new Health((_isUp, _reason, isByTransport) => transports.push(isByTransport));
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER, at);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), true);
  answer(health, VICTIM, SPAN_MS);
  health.recordUnreachable(SPAN_MS, "ECONNREFUSED");
  answer(health, VICTIM, SPAN_MS);
  assert.deepEqual(transports, [false, false, true, true]);
});

test("an unreachable server is down for all", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  health.recordQuery(1, ATTACKER, 0);
  health.recordUnreachable(1, "ECONNREFUSED");
  assert.equal(health.checkIsDown(1, VICTIM), true);
});

test("a report that a server is unreachable counts once confirmed by sockets that were opened since, without a reply between", () => {
  const { health, changes } = watched();
  const report = (suspicion = health.suspicion): boolean => health.recordSocketError(1, suspicion, "ECONNREFUSED");
  const before = health.suspicion;
  assert.deepEqual([report(before), report(before), report(before), report(before)], [true, false, false, false]);
  assert.deepEqual([report(), health.checkIsDown(1)], [true, false]);
  answer(health, VICTIM, 1);
  for (let count = 1; count < LIMITS.downAfterSocketErrors; count++) report();
  assert.deepEqual([health.checkIsDown(1), changes], [false, []]);
  report();
  assert.deepEqual([health.checkIsDown(1), changes], [true, ["down: ECONNREFUSED"]]);
});

test("an error of a socket that does not concern the server is no such report", () => {
  const { health } = watched();
  assert.equal(health.recordSocketError(1, health.suspicion, "ENOBUFS"), false);
});

test("a server that is down for one container gets trial queries from that one", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER, at);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), true);
  const laterMs = SPAN_MS + LIMITS.trialMsFirst;
  assert.deepEqual([health.takeTrial(laterMs, VICTIM), health.takeTrial(laterMs, ATTACKER)], [false, true]);
});

function watched(): { readonly health: Health; readonly changes: string[] } {
  const changes: string[] = [];
  return { health: new Health((isUp, reason) => changes.push(`${isUp ? "up" : "down"}: ${reason}`)), changes };
}

function answer(health: Health, by: number, atMs: number, tookMs = 1): void {
  health.recordQuery(atMs, by, 0);
  health.recordAnswer(atMs, tookMs);
}

function fail(health: Health, by: number, atMs: number, tookMs: number): void {
  health.recordQuery(atMs, by, 0);
  health.recordFailure(atMs, tookMs);
}
