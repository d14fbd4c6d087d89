import assert from "node:assert/strict";
import { test } from "node:test";

import { MultiMap } from "../../../../src/base/lib/multi-map.ts";

const [a, b, c] = [{ n: 1 }, { n: 2 }, { n: 3 }];

test("a key has its values in the order in which they came, each once, and none after they went", () => {
  const map = new MultiMap<object>();
  const values = (): object[] => [...map.of("x")];
  for (const value of [a, a, b, c, b]) map.add("x", value);
  assert.deepEqual(values(), [a, b, c]);
  map.delete("x", a);
  map.delete("x", a);
  assert.deepEqual(values(), [b, c]);
  map.delete("x", b);
  map.delete("x", b);
  assert.deepEqual([values(), [...map.groups()].map((group) => [...group])], [[c], [[c]]]);
  map.add("x", a);
  map.add("y", b);
  assert.deepEqual([values(), [...map.of("y")], [...map.of("z")]], [[c, a], [b], []]);
  for (const value of [a, c]) map.delete("x", value);
  assert.deepEqual([values(), map.isEmpty], [[], false]);
  map.delete("y", b);
  assert.equal(map.isEmpty, true);
});
