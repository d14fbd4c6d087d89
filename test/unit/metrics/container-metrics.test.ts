// Proves that what a container has asked is counted under its name up to the bound, and that no number ever falls: not
// when containers go, not when others take their place, not when they come back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ContainerMetrics } from "../../../src/metrics/container-metrics.ts";

function asked(queries: number): Record<string, number> {
  return { queries, local: queries };
}

function queriesOf(counts: ContainerMetrics): Record<string, number> {
  return Object.fromEntries(counts.containers().map(([name, { queries }]) => [name, queries]));
}

test("containers beyond the bound are counted together", () => {
  const counts = new ContainerMetrics(2);
  for (const name of ["a", "b", "c", "d"]) counts.startCounting(name, asked(1));
  assert.deepEqual(queriesOf(counts), { "(other)": 2, a: 1, b: 1 });
});

test("a container that comes back goes on where it was", () => {
  const counts = new ContainerMetrics(2);
  const first = asked(5);
  counts.startCounting("a", first);
  counts.stopCounting(first);
  assert.deepEqual(queriesOf(counts), { "(other)": 0, a: 5 });
  counts.startCounting("a", asked(2));
  assert.deepEqual(queriesOf(counts), { "(other)": 0, a: 7 });
});

test("who has gone gives its place up, and its number to the others", () => {
  const counts = new ContainerMetrics(1);
  const gone = asked(5);
  counts.startCounting("a", gone);
  counts.stopCounting(gone);
  counts.startCounting("b", asked(2));
  assert.deepEqual(queriesOf(counts), { "(other)": 5, b: 2 });
});

test("who has no place does not take one while it is served: its number would fall among the others", () => {
  const counts = new ContainerMetrics(1);
  const a = asked(1);
  const b = asked(3);
  counts.startCounting("a", a);
  counts.startCounting("b", b);
  counts.stopCounting(a);
  b["queries"] = 4;
  assert.deepEqual(queriesOf(counts), { "(other)": 4, a: 1 });
});

test("with a bound of none all are counted together, also after it was raised", () => {
  const counts = new ContainerMetrics(0);
  counts.startCounting("a", asked(1));
  assert.equal(counts.hasContainerSeries, false);
  counts.setContainersMax(5);
  counts.startCounting("b", asked(1));
  assert.deepEqual(queriesOf(counts), { "(other)": 1, b: 1 });
});

test("a repair is what follows a failure, by its code, once", () => {
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
