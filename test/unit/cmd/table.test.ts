// Proves that tables fit the terminal: columns are dropped by importance, cells wrap, padding is not painted; and that
// without a terminal every row is one line.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Column, fits, table } from "../../../cmd/text/table.ts";
import { PLAIN } from "../../../cmd/text/terminal.ts";
import { wrapped } from "../../../cmd/text/wrap.ts";

const HEAD: readonly Column[] = [
  { title: "NAME", min: 8 },
  { title: "COUNT", isNumber: true },
  { title: "FIRST", drop: 1 },
  { title: "SECOND", drop: 2 },
  { title: "WHY" },
];
const ROWS = [
  ["web", "1", "first", "second", "short"],
  ["worker", "1200", "first", "second", "a reason of several words that is longer than its column"],
];

function at(width: number, rows: readonly (readonly string[])[] = ROWS): string[] {
  return table(HEAD, rows, { ...PLAIN, width })
    .trimEnd()
    .split("\n");
}

test("without a terminal, a row is a line with all columns", () => {
  assert.deepEqual(table(HEAD, ROWS).split("\n"), [
    "NAME    COUNT  FIRST  SECOND  WHY",
    "web         1  first  second  short",
    "worker   1200  first  second  a reason of several words that is longer than its column",
    "",
  ]);
});

test("the last column wraps under its own beginning", () => {
  assert.deepEqual(at(60), [
    "NAME    COUNT  FIRST  SECOND  WHY",
    "web         1  first  second  short",
    "worker   1200  first  second  a reason of several words that",
    "                              is longer than its column",
  ]);
});

test("the least important columns are dropped first, and only as many as needed", () => {
  assert.equal(at(50)[0], "NAME    COUNT  FIRST  WHY");
  assert.equal(at(40)[0], "NAME    COUNT  WHY");
  for (let width = 40; width < 100; width++) {
    for (const line of at(width)) assert.ok(line.length <= width, `${line.length} columns at ${width}`);
  }
});

test("a name that is longer than its column is cut into several lines, so that others stay in theirs", () => {
  const lines = at(60, [["q".repeat(100), "1", "first", "second", "why"]]);
  assert.ok(lines.every((line) => line.length <= 60));
  assert.equal(lines.join("").split("q").length - 1, 100);
});

test("colours surround the text of a cell, not its padding, and hostile text cannot add any", () => {
  const shown = table(
    ["A", "B"],
    [
      [{ text: "x\u001b[31m", colour: "red" }, "y"],
      [{ text: "longer than x", colour: undefined }, "z"],
    ],
    { ...PLAIN, paint: (text, colour) => `<${colour}>${text}</>` },
  );
  assert.deepEqual(shown.split("\n"), [
    "<bold>A</>              <bold>B</>",
    "<red>x\\x1b[31m</>      y",
    "longer than x  z",
    "",
  ]);
});

test("notes are lines below their row, and are not wrapped", () => {
  const rows = [{ cells: ["a", "b"], notes: ["  fix: a command that does not fit\u0007"] }, ["c", "d"]];
  assert.deepEqual(table(["A", "B"], rows, { ...PLAIN, width: 24 }).split("\n"), [
    "A  B",
    "a  b",
    "  fix: a command that does not fit\\x07",
    "c  d",
    "",
  ]);
});

test("a text is wrapped after blanks, commas and slashes, otherwise cut; nothing of it is lost", () => {
  assert.deepEqual(wrapped("one two three", 8), ["one two", "three"]);
  assert.deepEqual(wrapped("one two three", 8, "  "), ["one two", "  three"]);
  assert.deepEqual(wrapped("shop_back,shop_front", 12), ["shop_back,", "shop_front"]);
  assert.deepEqual(wrapped("/etc/dns11/dns11.yaml", 12), ["/etc/dns11/", "dns11.yaml"]);
  assert.deepEqual(wrapped("aaaaaaaaaa b", 4), ["aaaa", "aaaa", "aa b"]);
  assert.deepEqual(wrapped("", 4), [""]);
});

test("a column of names is cut in the middle, and one whose texts may be below does not count as too wide", () => {
  const head: readonly Column[] = [
    { title: "PROJECT", min: 8, isCut: true },
    { title: "CONTAINER" },
    { title: "WHY", below: 40 },
  ];
  const rows = [["acme-platform-checkout", "web-1", "a reason that is longer than what is left for it"]];
  assert.match(table(head, rows, { ...PLAIN, width: 24 }), /^acm\S*\.\.\S*kout +web-1$/m);
  assert.deepEqual(
    [24, 60].map((width) => fits(head, rows, { ...PLAIN, width })),
    [false, true],
  );
});
