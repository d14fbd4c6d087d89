// Proves whose observations count for a server: those of one container only for itself, if others use that server, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { Health } from "../../../../src/query/upstream/health.ts";
import { zoneOf } from "../../../../src/query/upstream/zone.ts";
import { aQuery } from "../../../support/scripted/builders.ts";

const [ATTACKER, VICTIM] = [1, 2];
const SPAN_MS = LIMITS.downAfterMs;

test("a server that is silent for one container is down for that one alone, if another one uses it, too", () => {
  const { health, changes } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER);
  assert.deepEqual(
    [health.checkIsDown(SPAN_MS, ATTACKER), health.checkIsDown(SPAN_MS, VICTIM), health.checkIsDown(SPAN_MS)],
    [true, false, false],
  );
  assert.deepEqual(changes, ["down: does not answer (observed by one container only)"]);
});

test("a query of another container that has just been sent proves nothing yet", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= 2 * SPAN_MS; at += 100) health.recordQuery(at, ATTACKER);
  health.recordQuery(2 * SPAN_MS, VICTIM);
  assert.equal(health.checkIsDown(2 * SPAN_MS + 100, VICTIM), false);
  assert.equal(health.checkIsDown(3 * SPAN_MS, VICTIM), true, "it has been silent long enough");
  assert.equal(health.checkIsDown(3 * SPAN_MS), true);
});

test("if no other container uses the server, one container decides for all", () => {
  const { health, changes } = watched();
  for (let count = 0; count < LIMITS.downAfterQueries; count++) health.recordQuery(0, VICTIM);
  assert.equal(health.checkIsDown(SPAN_MS), true);
  assert.deepEqual(changes, ["down: does not answer"]);
});

test("any answer to any container ends the suspicion", () => {
  const { health, changes } = watched();
  answer(health, VICTIM, 0);
  for (let at = 0; at <= SPAN_MS; at += 100) health.recordQuery(at, ATTACKER);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), true);
  answer(health, VICTIM, SPAN_MS);
  assert.equal(health.checkIsDown(SPAN_MS, ATTACKER), false);
  assert.equal(changes.at(-1), "up: answers again");
});

test("failures of one container's names do not bring it down for others; those of several do", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  for (let count = 0; count < 100; count++) fail(health, ATTACKER, count, count);
  assert.deepEqual([health.checkIsDown(100, ATTACKER), health.checkIsDown(100, VICTIM)], [true, false]);
  for (let count = 0; count < LIMITS.downAfterErrorsOthers; count++) fail(health, VICTIM, 200, 1);
  assert.deepEqual(
    [health.checkIsDown(200, VICTIM), health.checkIsDown(200)],
    [false, false],
    "one zone of the victim",
  );
  fail(health, VICTIM, 200, 2);
  assert.deepEqual([health.checkIsDown(300, VICTIM), health.checkIsDown(300)], [true, true]);
});

test("a zone that fails does not bring a server down, however often it is queried; two zones do", () => {
  const { health, changes } = watched();
  for (let count = 0; count < 1_000; count++) fail(health, VICTIM, count, 7);
  assert.deepEqual([health.checkIsDown(1_000), changes], [false, []]);
  fail(health, VICTIM, 1_000, 8);
  assert.equal(health.checkIsDown(1_000), true);
  assert.deepEqual(changes, ["down: answers with errors only"]);
});

test("only silence and what is unreachable are faults of transport, also when the server comes back", () => {
  const transports: boolean[] = [];
  const health = new Health((_isUp, _reason, isByTransport) => transports.push(isByTransport));
  for (let count = 0; count < LIMITS.downAfterErrors; count++) fail(health, VICTIM, 0, count);
  answer(health, VICTIM, 1);
  health.recordUnreachable(2, "ECONNREFUSED");
  answer(health, VICTIM, 3);
  assert.deepEqual(transports, [false, false, true, true]);
});

test("the zone of a name is its last two labels, in any letter case", () => {
  const zone = (name: string): number => zoneOf(aQuery({ name }));
  assert.equal(zone("a.b.Example.org"), zone("x.example.ORG"));
  assert.notEqual(zone("a.example.org"), zone("a.example.net"));
  assert.equal(zone("db"), zone("web"), "names with one label are in the root zone");
  assert.equal(zoneOf(Buffer.alloc(4)), zone("db"));
});

test("an unreachable server is down for all", () => {
  const { health } = watched();
  answer(health, VICTIM, 0);
  health.recordQuery(1, ATTACKER);
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
  health.recordAnswer(atMs, 1);
}

function fail(health: Health, by: number, atMs: number, zone: number): void {
  health.recordQuery(atMs, by);
  health.recordFailure(atMs, 1, by, zone);
}
