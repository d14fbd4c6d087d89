// Proves the counts of the last minute: exact in the first minute, then the minute before fades, and a client that stops
// querying is at zero two minutes later.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Minutes, RecentCounts } from "../../../../src/query/client/recent-counts.ts";

class Clock {
  nowMs = 1_000_000;
  readonly minutes = new Minutes(() => this.nowMs);

  pass(seconds: number): void {
    this.nowMs += seconds * 1_000;
  }
}

test("the first minute is counted exactly, and then fades", () => {
  const clock = new Clock();
  const counters = { queries: 100, nxdomain: 5, errors: 1, local: 7 };
  const recent = new RecentCounts(counters);
  clock.minutes.open(recent);
  clock.pass(30);
  assert.deepEqual(clock.minutes.read(recent), { queries: 100, nxdomain: 5, errors: 1 });
  clock.pass(30);
  clock.minutes.nextMinute();
  assert.equal(clock.minutes.read(recent).queries, 100);
  clock.pass(15);
  counters.queries += 40;
  assert.equal(clock.minutes.read(recent).queries, 40 + 75);
  clock.pass(45);
  clock.minutes.nextMinute();
  clock.pass(60);
  clock.minutes.nextMinute();
  assert.deepEqual(clock.minutes.read(recent), { queries: 0, nxdomain: 0, errors: 0 });
  clock.minutes.close(recent);
});

test("a late turn shows no negative counts, and a closed client is not noted any more", () => {
  const clock = new Clock();
  const counters = { queries: 10, nxdomain: 0, errors: 0 };
  const [recent, other] = [new RecentCounts(counters), new RecentCounts(counters)];
  clock.minutes.open(recent);
  clock.minutes.open(other);
  clock.minutes.nextMinute();
  clock.pass(600);
  assert.equal(clock.minutes.read(recent).queries, 0);
  clock.minutes.close(recent);
  counters.queries += 5;
  clock.minutes.nextMinute();
  clock.minutes.nextMinute();
  clock.pass(60);
  assert.equal(clock.minutes.read(recent).queries, 5);
  assert.equal(clock.minutes.read(other).queries, 0);
  clock.minutes.close(other);
});
