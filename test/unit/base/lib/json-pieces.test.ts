// Proves that JSON that is written in pieces is the same text as JSON.stringify makes, and that other work runs in between.

import assert from "node:assert/strict";
import { test } from "node:test";

import { writeJson } from "../../../../src/base/lib/slices.ts";
import { countRounds } from "../../../support/rig/rounds.ts";

async function written(value: unknown): Promise<string[]> {
  const texts: string[] = [];
  await writeJson(value, (text) => void texts.push(text));
  return texts;
}

const VALUES: readonly unknown[] = [
  null,
  true,
  'a "text"\n',
  [],
  {},
  [1, undefined, () => 1, { a: undefined }, [undefined]],
  { a: undefined, list: [], b: 1, "a key": [1, undefined, [2]], c: { list: [1] }, d: () => 1, e: null },
  { a: undefined },
  new Date(0),
  { at: new Date(0), all: [new Date(0)] },
];

for (const value of VALUES) {
  test(`${JSON.stringify(value)} is written as it is`, async () => {
    assert.equal((await written(value)).join(""), JSON.stringify(value));
  });
}

test("a long list is written in several texts, between which other work runs", async () => {
  const value = { containers: Array.from({ length: 5_000 }, (_, index) => ({ name: `container ${index}` })) };
  using rounds = countRounds();
  const texts = await written(value);
  assert.ok(texts.length > 1);
  assert.ok(rounds.count > 0);
  assert.equal(texts.join(""), JSON.stringify(value));
});
