// Proves that JSON that is written in pieces is the same text as JSON.stringify makes, that a list that is read in pieces is
// what JSON.parse makes of it, and that other work runs in between.

import assert from "node:assert/strict";
import { test } from "node:test";

import { readJsonList, writeJson } from "../../../../src/base/lib/json-pieces.ts";
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

/** The text, cut every so many characters. */
async function* cut(text: string, length: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += length) yield text.slice(at, at + length);
}

const LISTS: readonly (readonly object[])[] = [
  [],
  [{}],
  [{ a: 1 }, { b: [{ c: "}" }, [], [[]]] }, { d: null }],
  [{ 'a "key" {': 'a "text" \\', b: "\\\\", c: '"', d: "]" }, { e: "é€😀\u0000" }],
  [[1, "]", { a: "[" }], []],
];

for (const list of LISTS) {
  test(`${JSON.stringify(list)} is read as it is, wherever it is cut`, async () => {
    for (const text of [JSON.stringify(list), `\n ${JSON.stringify(list, undefined, 2)}\n`]) {
      for (let length = 1; length <= text.length; length++) {
        assert.deepEqual(await readJsonList(cut(text, length)), list, `every ${length} characters`);
      }
    }
  });
}

const NO_LISTS = [
  "",
  " ",
  "null",
  "1",
  "{}",
  '"a"',
  "[",
  '[{"a":1}',
  '[{"a":1',
  '["a"]',
  "[{}][{}]",
  "[{}]{}",
  "[{a:1}]",
  "[{}",
];

for (const text of NO_LISTS) {
  test(`"${text}" is refused as a list of objects`, async () => {
    for (const length of [1, 3, text.length + 1]) await assert.rejects(readJsonList(cut(text, length)));
  });
}

test("other work runs while a long list is read", async () => {
  const list = Array.from({ length: 20_000 }, (_, index) => ({ name: `container ${index}`, labels: { a: "b" } }));
  using rounds = countRounds();
  assert.deepEqual(await readJsonList(cut(JSON.stringify(list), 65_536)), list);
  assert.ok(rounds.count > 0);
});
