// Proves that text from containers can neither control the terminal nor change the reading order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { printable, printableLines, printableText } from "../../../cmd/printable.ts";

test("control characters are escaped, all other text stays", () => {
  assert.equal(printable("\u001b]0;x\u0007\u009b1m\n\u202egnp\u2066"), "\\x1b]0;x\\x07\\x9b1m\\x0a\\u202egnp\\u2066");
  assert.equal(printable("größer als 例え 🐳"), "größer als 例え 🐳");
});

test("the lines of a text stay lines", () => {
  assert.equal(printableText("a\u001b\nb\n"), "a\\x1b\nb\n");
  assert.equal(printableLines(["a\r", "b"]), "a\\x0d\nb\n");
});
