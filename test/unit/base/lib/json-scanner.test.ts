// Proves that the scanner keeps of a JSON text exactly what is wanted, wherever the text is cut, and that what nobody wants
// costs no memory, however long it is.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { JsonScanner, LastText, Members, type Shape } from "../../../../src/base/lib/json-scanner.ts";
import { runs } from "../../../support/rig/runs.ts";

const LIMITS = { bytesMax: 1 << 20, textBytesMax: 4_096 };

function scanned(texts: Iterable<Buffer>, shape: Shape, isList = false, limits = LIMITS): unknown[] {
  const values: unknown[] = [];
  const scanner = new JsonScanner(shape, isList, limits, (value) => values.push(value));
  for (const text of texts) scanner.push(text);
  assert.ok(scanner.isComplete);
  return values;
}

function* cut(text: string, length: number): Generator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

/** The same by JSON.parse. */
function wantedOf(value: unknown, shape: Shape): unknown {
  if (Array.isArray(value)) return value.map((each) => wantedOf(each, shape));
  if (typeof value !== "object" || value === null || shape === true) return value;
  const entries = Object.entries(value).flatMap(([name, member]) => {
    const wanted = Object.hasOwn(shape, name) ? (shape as Record<string, Shape>)[name] : undefined;
    return wanted === undefined ? [] : [[name, wantedOf(member, wanted)] as const];
  });
  return Object.fromEntries(entries);
}

const NAMES = ["a", "b", 'q"', "\\", "é€😀", "\u0000\n", ""];
const names = fc.constantFrom(...NAMES);
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: "binary" }),
    fc.constantFrom("\\", '"', '\\"', "\ud800", "]}", '{"a":'),
    fc.double({ noNaN: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("json"), { maxLength: 4 }),
    fc.dictionary(names, tie("json"), { maxKeys: 4, noNullPrototype: true }),
  ),
}));
const objects = fc.dictionary(names, json, { maxKeys: 5, noNullPrototype: true });
const { shape: shapes } = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 3 },
    fc.constant<Shape>(true),
    fc.dictionary(names, tie("shape"), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

test("what is kept is what JSON.parse finds at the places that are wanted, wherever the text is cut", () => {
  fc.assert(
    fc.property(
      objects,
      shapes,
      fc.integer({ min: 1, max: 40 }),
      fc.constantFrom(0, 2),
      (value, shape, length, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const wanted = JSON.parse(JSON.stringify(wantedOf(value, shape))) as unknown;
        assert.deepEqual(scanned(cut(text, length), shape), [wanted]);
        assert.deepEqual(scanned(cut(`${text}\n${text}`, length), shape), [wanted, wanted]);
        assert.deepEqual(scanned(cut(`[${text}, ${text}]`, length), shape, true), [wanted, wanted]);
      },
    ),
    { numRuns: runs(200) },
  );
});

test("of members with any names as many are kept as are allowed, and of a list the last text that begins as wanted", () => {
  const value = { labels: { a: "1", b: "2", c: "3" }, env: ["X=1", "K=1", "KEY=2", "K=3", "Y=4"], none: ["X=1"] };
  const shape: Shape = {
    labels: new Members(true, 2, (name) => name !== "a"),
    env: new LastText("K="),
    none: new LastText("K="),
  };
  for (let length = 1; length < 100; length++)
    assert.deepEqual(scanned(cut(JSON.stringify(value), length), shape), [
      { labels: { b: "2", c: "3" }, env: ["K=3"], none: [] },
    ]);
  assert.deepEqual(scanned([Buffer.from('{"ports":{"1":{},"2":{},"3":{}}}')], { ports: new Members({}, 2) }), [
    { ports: { "1": {}, "2": {} } },
  ]);
});

test("a long text is cut between two characters, and a member with a long name is passed over", () => {
  const limits = { ...LIMITS, textBytesMax: 8 };
  for (const char of ["x", "é", "€", "😀", '"', "\\", "\n", "\u0001"])
    for (let before = 0; before < 8; before++) {
      const long = "-".repeat(before) + char.repeat(40);
      const text = JSON.stringify({ a: long, b: 1, [long]: 2 });
      for (const length of [1, 3, 7, 1_000]) {
        const [value] = scanned(cut(text, length), true, false, limits) as [{ a: string; b: number }];
        assert.deepEqual(Object.keys(value), ["a", "b"]);
        assert.ok(long.startsWith(value.a), JSON.stringify(value.a));
        const bytes = Buffer.byteLength(JSON.stringify(value.a)) - 2;
        assert.ok(bytes >= 8 && bytes < 8 + 6, `${JSON.stringify(char)} after ${before}: ${bytes}`);
      }
    }
});

test("more than the limit of what is wanted cannot be read; of what is not wanted there may be any number of bytes", () => {
  const limits = { bytesMax: 1_000, textBytesMax: 100 };
  const long = { list: Array.from({ length: 500 }, (_, index) => `text ${index}`), text: "x".repeat(1 << 20), last: 1 };
  const text = JSON.stringify(long);
  assert.throws(() => scanned(cut(text, 4_096), { list: true, last: true }, false, limits), /over 1000 bytes/);
  assert.deepEqual(scanned(cut(text, 4_096), { last: true }, false, limits), [{ last: 1 }]);
  const deep = `{"a":${"[".repeat(100)}${"]".repeat(100)},"b":1}`;
  assert.throws(() => scanned(cut(deep, 7), true), /levels/);
  assert.deepEqual(scanned(cut(deep, 7), { b: true }), [{ b: 1 }]);
});

for (const text of [
  "null",
  '"a"',
  "[1]",
  "[[]]",
  "{]",
  '{"a" 1}',
  '{"a":1 2}',
  "{a:1}",
  "[{}}",
  "[{},,{}]",
  '{"a":1}x',
  "[{}]x",
])
  test(`${text} is refused`, () => {
    assert.throws(() => scanned([Buffer.from(text)], true));
    assert.throws(() => scanned([Buffer.from(text)], true, true));
  });

test("a text that ends too early is not complete", () => {
  for (const [text, isList] of [
    ['{"a":', false],
    ["[{}", true],
    ["", true],
  ] as const) {
    const scanner = new JsonScanner(true, isList, LIMITS, () => undefined);
    scanner.push(Buffer.from(text));
    assert.equal(scanner.isComplete, false);
  }
});
