// Patterns of names: what is a pattern, what is not, and which names each matches, in an index with many others.

import assert from "node:assert/strict";
import { test } from "node:test";

import { wireLabels } from "../../../src/base/dns/name.ts";
import { StoredName } from "../../../src/base/model/label-table.ts";
import { readPattern, PatternIndex } from "../../../src/base/model/name-pattern.ts";

function named(text: string): StoredName {
  const labels = text === "" ? new Uint8Array(0) : wireLabels(text);
  assert.ok(labels);
  return new StoredName(labels);
}

const NAMES = ["", "db", "test", "x.test", "a.x.test", "b.a.x.test", "x.test.org", "xx.test"];

for (const [pattern, matched] of [
  ["x.test", ["x.test"]],
  ["X.Test.", ["x.test"]],
  ["*.x.test", ["a.x.test"]],
  ["**.x.test", ["a.x.test", "b.a.x.test"]],
  ["*", ["db", "test"]],
  ["*.test", ["x.test", "xx.test"]],
  ["**.test", ["x.test", "a.x.test", "b.a.x.test", "xx.test"]],
  ["**", NAMES],
] as const) {
  test(`${pattern} matches ${matched.length} of ${NAMES.length} names, alone and among others`, () => {
    const index = new PatternIndex<string>();
    index.add(readPattern(pattern), "meant");
    const found = (): string[] => NAMES.filter((name) => index.find(named(name)).includes("meant"));
    assert.deepEqual(found(), matched);
    for (const other of ["a.b.c.d", "*.org", "**.example", "x.test"]) index.add(readPattern(other), other);
    assert.deepEqual(found(), matched);
    index.remove(readPattern(pattern), (value) => value === "meant");
    assert.deepEqual(found(), []);
    assert.deepEqual(index.find(named("a.b.c.d")), ["a.b.c.d"]);
  });
}

for (const text of [
  "",
  ".",
  "a..b",
  ".x.test",
  "a.*.test",
  "***.test",
  "*x.test",
  "bücher.test",
  "a b",
  "x".repeat(64),
  `${"a.".repeat(128)}a`,
]) {
  test(`${JSON.stringify(text.slice(0, 12))} is no pattern, and the error says what is`, () => {
    assert.throws(() => readPattern(text), /invalid name ".*": use a name such as "db\.shop\.test"/);
  });
}

test("an index that is emptied is empty", () => {
  const index = new PatternIndex<number>();
  const pattern = readPattern("**.x.test");
  index.add(pattern, 1);
  index.add(pattern, 2);
  assert.deepEqual(index.find(named("a.x.test")), [1, 2]);
  index.remove(pattern, (value) => value === 1);
  index.remove(pattern, (value) => value === 3);
  assert.deepEqual(index.find(named("a.x.test")), [2]);
  index.remove(pattern, (value) => value === 2);
  assert.ok(index.isEmpty);
});
