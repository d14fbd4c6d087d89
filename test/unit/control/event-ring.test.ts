// Proves that events are numbered and bounded, that one container that starts again and again does not displace the events of
// others, and that followers get each event once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { EventRing } from "../../../src/control/history/history-rings.ts";

test("the last events are read by number, and missing ones are counted", () => {
  const ring = new EventRing();
  assert.deepEqual(ring.read(10), { events: [], missed: 0, last: 0 });
  for (const server of ["a", "b", "c"]) ring.record({ kind: "server-down", server });
  assert.deepEqual(
    ring.read(2).events.map(({ number, server }) => [number, server]),
    [
      [2, "b"],
      [3, "c"],
    ],
  );
  assert.deepEqual(ring.read(10, 2).events.length, 1);
  assert.deepEqual(ring.read(0, 1), { events: [], missed: 2, last: 3 });
  assert.equal(ring.read(10, 99).missed, 0);
});

test("when it is full, the subject with the most events loses its oldest one", () => {
  const ring = new EventRing();
  ring.record({ kind: "engine-lost", detail: "once" });
  ring.record({ kind: "container-started", container: "quiet", containerId: "1" });
  for (let i = 0; i < 3 * LIMITS.events; i++)
    ring.record({ kind: "container-died", container: "loop", containerId: "2" });
  const { events, missed, last } = ring.read(LIMITS.events);
  assert.equal(events.length, LIMITS.events);
  assert.equal(last, 3 * LIMITS.events + 2);
  assert.equal(missed, last - LIMITS.events);
  assert.deepEqual(
    events.slice(0, 2).map(({ number, kind }) => [number, kind]),
    [
      [1, "engine-lost"],
      [2, "container-started"],
    ],
  );
});

test("of subjects with equally many, the one with the oldest event loses it, also if it has been known for longest", () => {
  const ring = new EventRing();
  ring.record({ kind: "server-down", server: "first" });
  for (let i = 2; i < LIMITS.events; i++) ring.record({ kind: "server-down", server: `s${i}` });
  ring.record({ kind: "server-up", server: "first" });
  for (const server of ["new", "newer"]) ring.record({ kind: "server-down", server });
  const numbers = ring.read(LIMITS.events).events.map(({ number }) => number);
  assert.deepEqual([numbers.length, numbers[0], numbers.includes(LIMITS.events)], [LIMITS.events, 3, true]);
});

test("a long reason is cut, and what is not given is null", () => {
  const ring = new EventRing();
  ring.record({ kind: "attach-failed", container: "web", detail: "x".repeat(10_000) });
  const [event = assert.fail()] = ring.read(1).events;
  assert.equal(event.detail?.length, 500);
  assert.deepEqual([event.network, event.server, event.exitCode, event.project], [null, null, null, null]);
});

test("a follower gets the last events and then each new one, once", async () => {
  const ring = new EventRing();
  ring.record({ kind: "server-down", server: "a" });
  ring.record({ kind: "server-up", server: "a" });
  const stop = new AbortController();
  const stream = ring.follow(1, stop.signal);
  assert.equal((await stream.next()).value?.number, 2);
  ring.record({ kind: "server-down", server: "b" });
  ring.record({ kind: "server-down", server: "c" });
  assert.equal((await stream.next()).value?.server, "b");
  assert.equal((await stream.next()).value?.server, "c");
  stop.abort();
  assert.equal((await stream.next()).done, true);
});
