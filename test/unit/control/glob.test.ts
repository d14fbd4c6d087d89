// Proves what a pattern matches, and that no pattern is slow.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { globMatches } from "../../../src/control/server/parameters.ts";
import { runs } from "../../support/rig/runs.ts";

for (const [pattern, matching, others] of [
  ["", [""], ["a"]],
  ["*", ["", "a", "a.b"], []],
  ["web", ["web", "WEB"], ["web1", "aweb", ""]],
  ["*.Example", ["a.example", ".example"], ["example", "a.example.org"]],
  ["a*b*c", ["abc", "a.b.b.c"], ["ab", "acb", "xabc"]],
  ["w?b", ["web", "wib"], ["wb", "weeb"]],
  ["a.c", ["a.c"], ["abc"]],
  ["*a?", ["aab", "xxab"], ["a"]],
] as const) {
  test(`"${pattern}"`, () => {
    for (const text of matching) assert.ok(globMatches(pattern, text), text);
    for (const text of others) assert.ok(!globMatches(pattern, text), text);
  });
}

test("it agrees with the equivalent regular expression", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 8 });
  const pattern = fc.string({ unit: fc.constantFrom("a", "b", ".", "*", "?"), maxLength: 6 });
  fc.assert(
    fc.property(pattern, text, (wanted, given) => {
      const source = wanted.replaceAll(".", "\\.").replaceAll("?", ".").replaceAll(/\*+/g, ".*");
      assert.equal(globMatches(wanted, given), new RegExp(`^${source}$`).test(given));
    }),
    { numRuns: runs(200) },
  );
});

test("a pattern of many stars is fast on a long text", () => {
  assert.ok(!globMatches(`${"*a".repeat(100)}*b`, "a".repeat(1_000)));
});
