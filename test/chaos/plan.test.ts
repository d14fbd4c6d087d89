/** The plan of a run depends only on its seed, and a short one contains every kind of fault. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { parseScenario } from "../support/scripted/scenario.ts";
import { KINDS, type Track, planOf } from "./plan.ts";

const MINUTE_MS = 60_000;
const CONTAINERS = 5;

test("the same seed gives the same plan, another seed another plan", () => {
  assert.deepEqual(planOf(3, MINUTE_MS, CONTAINERS), planOf(3, MINUTE_MS, CONTAINERS));
  assert.notDeepEqual(planOf(3, MINUTE_MS, CONTAINERS).tracks, planOf(4, MINUTE_MS, CONTAINERS).tracks);
});

test("a longer plan starts like a shorter one", () => {
  const [short, long] = [planOf(3, MINUTE_MS, CONTAINERS), planOf(3, 10 * MINUTE_MS, CONTAINERS)];
  for (const track of Object.keys(KINDS) as Track[]) {
    assert.deepEqual(long.tracks[track].slice(0, short.tracks[track].length), short.tracks[track]);
  }
});

test("every kind occurs once before any repeats, and only selected kinds occur", () => {
  const { tracks } = planOf(7, 10 * MINUTE_MS, CONTAINERS);
  for (const track of Object.keys(KINDS) as Track[]) {
    const kinds: readonly string[] = KINDS[track];
    const first = tracks[track].slice(0, kinds.length).map(({ kind }) => kind);
    assert.deepEqual(first.toSorted(), kinds.toSorted());
  }
  const kills = planOf(7, MINUTE_MS, CONTAINERS, ["kill"]).tracks;
  assert.deepEqual(
    new Set(Object.values(kills).flatMap((faults) => faults.map(({ kind }) => kind))),
    new Set(["kill"]),
  );
});

test("the behaviour of the upstream servers is a valid scenario", () => {
  for (let seed = 0; seed < 50; seed++) {
    const { upstreams } = planOf(seed, MINUTE_MS, CONTAINERS);
    assert.doesNotThrow(() => parseScenario(upstreams, `seed ${seed}`));
  }
});
