// Proves that text from containers can neither control the terminal nor change the reading order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { jsonLine, printable, printableLines, printableText } from "../../../cmd/text/printable.ts";

test("control characters are escaped, all other text stays", () => {
  assert.equal(printable("\u001b]0;x\u0007\u009b1m\n\u202egnp\u2066"), "\\x1b]0;x\\x07\\x9b1m\\x0a\\u202egnp\\u2066");
  assert.equal(printable("größer als 例え 🐳"), "größer als 例え 🐳");
  assert.equal(printable("\u2028\u2029\u061c\u200e\u200f"), "\\u2028\\u2029\\u061c\\u200e\\u200f");
});

test("JSON is the same value without control characters", () => {
  const controls = "\u0000\n\u001b\u007f\u0080\u009b\u009f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069";
  const value = { [controls]: [controls, { deep: controls }], text: "größer als 例え 🐳" };
  const line = jsonLine(value);
  assert.match(line, /^[\x20-\x7eöß例え🐳]+\n$/u);
  assert.match(line, /"\\u0000\\n\\u001b\\u007f\\u0080\\u009b\\u009f\\u061c\\u200e/);
  assert.deepEqual(JSON.parse(line), value);
});

test("the lines of a text stay lines", () => {
  assert.equal(printableText("a\u001b\nb\n"), "a\\x1b\nb\n");
  assert.equal(printableLines(["a\r", "b"]), "a\\x0d\nb\n");
});
