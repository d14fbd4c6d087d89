/** The plan of a run comes from its seed alone, and a short one has something of everything. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { parseScenario } from "../support/scripted/scenario.ts";
import { KINDS, type Track, planOf } from "./plan.ts";

const MINUTE_MS = 60_000;
const CONTAINERS = 5;

test("the same seed gives the same plan, another one another", () => {
  assert.deepEqual(planOf(3, MINUTE_MS, CONTAINERS), planOf(3, MINUTE_MS, CONTAINERS));
  assert.notDeepEqual(planOf(3, MINUTE_MS, CONTAINERS).tracks, planOf(4, MINUTE_MS, CONTAINERS).tracks);
});

test("a longer run begins like a shorter one", () => {
  const [short, long] = [planOf(3, MINUTE_MS, CONTAINERS), planOf(3, 10 * MINUTE_MS, CONTAINERS)];
  for (const track of Object.keys(KINDS) as Track[]) {
    assert.deepEqual(long.tracks[track].slice(0, short.tracks[track].length), short.tracks[track]);
  }
});

test("each kind comes once before any comes again, and none beside those that are wanted", () => {
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

test("what the name servers do is a scenario for as long as the run", () => {
  for (let seed = 0; seed < 50; seed++) {
    const { upstreams } = planOf(seed, MINUTE_MS, CONTAINERS);
    assert.doesNotThrow(() => parseScenario(upstreams, `seed ${seed}`));
  }
});
