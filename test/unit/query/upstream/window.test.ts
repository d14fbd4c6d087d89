// Proves how many queries of a container a server has at once: as many as it works on, if more would only wait there. The server
// is simulated, with a time of its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { Window } from "../../../../src/query/upstream/server-queue.ts";

const { first, quickMs, tryEveryMs } = LIMITS.serverWindow;
const FLOOD = 1_024;
const LEARNING_MS = 6_000;
const MEASURED_MS = 2_000;
// No query takes as long as another.
const SPREAD = 0.2;
const GOLDEN_RATIO = 0.618;

test("a server that works on forty queries at once gets about as many, and stays busy", () => {
  const { p99Ms, perSecond } = simulate({ atOnce: 40, tookMs: 20, queries: FLOOD });
  assert.ok(p99Ms <= 2 * 20, `${p99Ms} ms`);
  assert.ok(perSecond >= 0.8 * 2_000, `${perSecond} queries/s`);
});

test("a server that works on one query after the other gets as many as delay nobody", () => {
  const { p99Ms, perSecond } = simulate({ atOnce: 1, tookMs: 0.5, queries: FLOOD });
  assert.ok(p99Ms <= 2 * quickMs, `${p99Ms} ms`);
  assert.ok(perSecond >= 0.95 * 2_000, `${perSecond} queries/s`);
});

test("a server that works on all at once gets all, however long each takes", () => {
  const queries = FLOOD / 4;
  for (const tookMs of [15, 50, 250]) {
    const { perSecond, limit } = simulate({ atOnce: Infinity, tookMs, queries });
    assert.ok(limit >= queries, `${limit} of ${queries}`);
    assert.ok(perSecond >= (0.8 * queries * 1_000) / tookMs, `${perSecond} queries/s`);
  }
});

test("answers that once came late do not hide that later ones wait", () => {
  const window = new Window();
  const slow = { atOnce: Infinity, tookMs: 250, queries: FLOOD };
  assert.ok(simulate(slow, window).limit >= FLOOD);
  const { p99Ms } = simulate({ atOnce: 40, tookMs: 20, queries: FLOOD }, window, 10 * tryEveryMs);
  assert.ok(p99Ms <= 2 * 20, `${p99Ms} ms`);
});

test("few queries at a time never change it", () => {
  const { limit } = simulate({ atOnce: 1, tookMs: 20, queries: first / 2 });
  assert.equal(limit, first);
});

type Simulation = { readonly atOnce: number; readonly tookMs: number; readonly queries: number };
type Sent = { readonly sentMs: number; readonly round: number };

let nowMs = 0;

// As many queries as there are and the window allows are always outstanding; reports what happened after the window was learned.
function simulate({ atOnce, tookMs, queries }: Simulation, window = new Window(), learningMs = LEARNING_MS) {
  const startMs = nowMs;
  const waiting: Sent[] = [];
  const working: (Sent & { readonly doneMs: number })[] = [];
  const delaysMs: number[] = [];
  let begun = 0;
  const fill = (): void => {
    while (waiting.length + working.length < Math.min(queries, window.limit)) {
      waiting.push({ sentMs: nowMs, round: window.epochOf(waiting.length + working.length + 1) });
    }
    while (working.length < atOnce) {
      const next = waiting.shift();
      if (next === undefined) break;
      const doneMs = nowMs + tookMs * (1 - SPREAD / 2 + SPREAD * ((begun++ * GOLDEN_RATIO) % 1));
      const place = working.findLastIndex((other) => other.doneMs <= doneMs) + 1;
      working.splice(place, 0, { ...next, doneMs });
    }
  };
  for (fill(); nowMs < startMs + learningMs + MEASURED_MS; fill()) {
    const done = working.shift();
    if (done === undefined) break;
    nowMs = done.doneMs;
    window.record(done.round, nowMs - done.sentMs, nowMs);
    if (nowMs >= startMs + learningMs) delaysMs.push(nowMs - done.sentMs);
  }
  const p99Ms = delaysMs.toSorted((a, b) => a - b)[Math.floor(delaysMs.length * 0.99)] ?? Infinity;
  return { p99Ms, perSecond: (delaysMs.length * 1_000) / MEASURED_MS, limit: window.limit };
}
