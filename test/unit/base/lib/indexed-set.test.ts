// Proves that a place leads to its object until that is removed, whatever else comes and goes.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { IndexedSet } from "../../../../src/base/lib/indexed-set.ts";

test("each object is at its place until it is removed", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 200 }), (steps) => {
      const places = new IndexedSet<object>();
      const known = new Map<number, object>();
      for (const step of steps) {
        const [first] = known.keys();
        if (step < 4 && first !== undefined) {
          places.remove(first);
          known.delete(first);
          assert.equal(places.at(first), undefined);
        } else {
          const item = {};
          const place = places.add(item);
          assert.ok(!known.has(place));
          known.set(place, item);
        }
        assert.equal(places.size, known.size);
      }
      for (const [place, item] of known) assert.equal(places.at(place), item);
      assert.deepEqual(new Set(places), new Set(known.values()));
    }),
  );
});

test("an object may be removed while they are visited", () => {
  const places = new IndexedSet<number>();
  for (let item = 0; item < 5; item++) places.add(item);
  const seen: number[] = [];
  for (const item of places) {
    seen.push(item);
    if (item === 1) places.remove(3);
  }
  assert.deepEqual(seen, [0, 1, 2, 4]);
});
