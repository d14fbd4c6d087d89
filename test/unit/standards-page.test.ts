// Proves that each test that the page of standards names is there.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { SCENARIOS } from "../forwarder/list.ts";

const ROW = /^\| [\d.]+ +\|[^|]+\| +(.+?) +\|$/gm;
const TESTS = readdirSync("test/unit", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => readFileSync(`test/unit/${name}`, "utf8"))
  .join("\n");

test("every row has a test that is there, or says why there is none", () => {
  const titles = new Set(SCENARIOS.map(({ title }) => title));
  const differing = new Set(SCENARIOS.filter(({ differs }) => differs !== undefined).map(({ title }) => title));
  const rows = [...readFileSync("docs/internals/rfc.md", "utf8").matchAll(ROW)].map(([, cell = ""]) => cell);
  assert.ok(rows.length > 40);
  for (const row of rows) {
    const [, differs, where, title = ""] = /^(differs(?:\.|:) )?(?:(scenario|unit): )?(.+)$/.exec(row) ?? [];
    if (where === "scenario") assert.ok(titles.has(title), `there is no scenario "${title}"`);
    if (where === "scenario" && differs !== undefined) assert.ok(differing.has(title), `"${title}" does not differ`);
    if (where === "unit") assert.ok(TESTS.includes(`test("${title}"`), `there is no test "${title}"`);
    if (where === undefined) assert.match(row, /^differs: /);
  }
});
