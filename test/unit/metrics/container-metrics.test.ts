// Proves that queries are counted by container up to the limit, and that no counter ever decreases: not when containers
// stop, not when others take over their series, not when they start again.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ContainerMetrics } from "../../../src/metrics/container-metrics.ts";

function counters(queries: number): Record<string, number> {
  return { queries, local: queries };
}

function queriesOf(counts: ContainerMetrics): Record<string, number> {
  return Object.fromEntries(counts.containers().map(([name, { queries }]) => [name, queries]));
}

test("containers beyond the limit are counted together", () => {
  const counts = new ContainerMetrics(2);
  for (const name of ["a", "b", "c", "d"]) counts.startCounting(name, counters(1));
  assert.deepEqual(queriesOf(counts), { "(other)": 2, a: 1, b: 1 });
});

test("a container that starts again continues its series", () => {
  const counts = new ContainerMetrics(2);
  const first = counters(5);
  counts.startCounting("a", first);
  counts.stopCounting(first);
  assert.deepEqual(queriesOf(counts), { "(other)": 0, a: 5 });
  counts.startCounting("a", counters(2));
  assert.deepEqual(queriesOf(counts), { "(other)": 0, a: 7 });
});

test("the series of a stopped container can be replaced, and its queries are counted as others", () => {
  const counts = new ContainerMetrics(1);
  const gone = counters(5);
  counts.startCounting("a", gone);
  counts.stopCounting(gone);
  counts.startCounting("b", counters(2));
  assert.deepEqual(queriesOf(counts), { "(other)": 5, b: 2 });
});

test("a container without a series gets none while it is served, because the counter of the others would decrease", () => {
  const counts = new ContainerMetrics(1);
  const a = counters(1);
  const b = counters(3);
  counts.startCounting("a", a);
  counts.startCounting("b", b);
  counts.stopCounting(a);
  b["queries"] = 4;
  assert.deepEqual(queriesOf(counts), { "(other)": 4, a: 1 });
});

test("with a limit of 0 all are counted together, also after it was raised", () => {
  const counts = new ContainerMetrics(0);
  counts.startCounting("a", counters(1));
  assert.equal(counts.hasContainerSeries, false);
  counts.setContainersMax(5);
  counts.startCounting("b", counters(1));
  assert.deepEqual(queriesOf(counts), { "(other)": 1, b: 1 });
});

test("a repair is counted once after a failure, by its code", () => {
  const counts = new ContainerMetrics(0);
  const attached = { kind: "attached", sinceMs: 0, verifiedMs: 0 } as const;
  assert.equal(counts.onState("a", attached), false);
  const failed = { kind: "failed", code: "UNVERIFIED", reason: "", culprits: [], atMs: 0 } as const;
  counts.onState("a", failed);
  counts.onState("a", failed);
  assert.equal(counts.onState("a", attached), true);
  assert.equal(counts.onState("a", attached), false);
  assert.deepEqual([...counts.attachFailures], [["UNVERIFIED", 2]]);
  assert.deepEqual([...counts.repairs], [["UNVERIFIED", 1]]);
});
