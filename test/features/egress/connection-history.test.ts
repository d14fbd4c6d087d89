/**
 * What one container connected to, from readings of the kernel's counts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionHistory } from "../../../src/features/egress/recording.ts";
import { EGRESS_LIMITS } from "../../../src/features/egress/limits.ts";
import type { Recorded } from "../../../src/features/egress/recorder.ts";

const START = 1_000_000;
const NONE = (): readonly string[] => [];

function recorded(count: number, agoMs = 0, port = 443): Recorded {
  return { key: Buffer.alloc(0), address: Buffer.of(192, 0, 2, 1), protocol: 6, port, count, agoMs };
}

test("counts are the differences of readings, and begin anew where the kernel had forgotten", () => {
  let [steadyMs, setMs] = [0, 0];
  const history = new ConnectionHistory(START, () => steadyMs);
  const read = (atMs: number, ...all: Recorded[]): number | undefined => {
    steadyMs = atMs;
    history.add(all, false, START + setMs + atMs, NONE);
    return history.list()[0]?.count;
  };
  assert.equal(read(1_000, recorded(2, 100)), 2);
  assert.equal(read(2_000, recorded(2, 1_100)), 2, "nothing new");
  setMs = 10 * EGRESS_LIMITS.kernelMs;
  assert.equal(read(2_500, recorded(2, 1_600)), 2, "the clock was set");
  assert.equal(read(3_000, recorded(5, 10)), 5);
  const later = 3_000 + 2 * EGRESS_LIMITS.kernelMs;
  assert.equal(read(later, recorded(1, 10)), 6, "less than before");
  assert.equal(read(later + 2 * EGRESS_LIMITS.kernelMs, recorded(1, 10)), 7, "as many as before, but much later");
  history.countAnew();
  assert.equal(read(later + 2 * EGRESS_LIMITS.kernelMs + 50, recorded(1, 10)), 8, "the kernel was told to forget");
});

test("the first is exact where it was the only one, or else as early as it can have been", () => {
  const history = new ConnectionHistory(START);
  history.add([recorded(1, 300, 1), recorded(9, 200, 2)], false, START + 1_000, NONE);
  const first = new Map(history.list().map(({ port, firstMs, lastMs }) => [port, [firstMs - START, lastMs - START]]));
  assert.deepEqual(first.get(1), [700, 700]);
  assert.deepEqual(first.get(2), [0, 800]);
});

test("names are those answered until then, and stay when they are forgotten elsewhere", () => {
  const history = new ConnectionHistory(START);
  const asked: [string, number][] = [];
  const namesOf = (names: readonly string[]) => (address: string, untilMs: number) => {
    asked.push([address, untilMs - START]);
    return names;
  };
  assert.deepEqual(history.add([recorded(1, 100)], false, START + 1_000, namesOf([])), { asked: 0, unasked: 1 });
  assert.deepEqual(history.add([recorded(3, 100)], false, START + 2_000, namesOf(["a.test", "b.test"])), {
    asked: 2,
    unasked: 0,
  });
  history.add([recorded(4, 100)], false, START + 3_000, namesOf(["b.test", "c.test"]));
  assert.deepEqual(history.list()[0]?.names, ["a.test", "b.test", "c.test"]);
  assert.deepEqual(asked[1], ["192.0.2.1", 1_900]);
});

test("the one that was used longest ago is dropped, and since when some are missing is said", () => {
  const history = new ConnectionHistory(START);
  const all = Array.from({ length: EGRESS_LIMITS.connections }, (_, index) => recorded(1, 0, index + 1));
  history.add(all, false, START + 1_000, NONE);
  assert.equal(history.missingSinceMs, undefined);
  history.add([recorded(2, 0, 1)], false, START + 2_000, NONE);
  history.add([recorded(1, 0, 60_000)], false, START + 3_000, NONE);
  const ports = new Set(history.list().map(({ port }) => port));
  assert.equal(ports.size, EGRESS_LIMITS.connections);
  assert.deepEqual([ports.has(1), ports.has(2), ports.has(60_000)], [true, false, true]);
  assert.equal(history.missingSinceMs, START + 1_000);
});

test("a full reading says that some may be missing since the one before", () => {
  const history = new ConnectionHistory(START);
  history.add([], false, START + 500, NONE);
  history.add([recorded(1)], true, START + 1_000, NONE);
  assert.equal(history.missingSinceMs, START + 500);
});

test("what the kernel records anew counts in full, also as many as before, and none of it is from before", () => {
  const history = new ConnectionHistory(START);
  history.add([recorded(1, 100)], false, START + 1_000, NONE);
  history.beginAnew(START + 60_000);
  history.add([recorded(1, 100), recorded(2, 100, 80)], false, START + 61_000, NONE);
  const found = new Map(history.list().map(({ port, count, firstMs }) => [port, [count, firstMs - START]]));
  assert.deepEqual(found.get(443), [2, 900]);
  assert.deepEqual(found.get(80), [2, 60_000]);
});
