// Proves which names of a label and which aliases count, and what is said about the others.

import assert from "node:assert/strict";
import { test } from "node:test";

import { aliasWildcards, labelNames } from "../../../src/features/extra-names/extra-names.ts";

function label(text: string): ReturnType<typeof labelNames> {
  return labelNames({ "io.dns11.names": text });
}

test("a label has names and wildcards, separated by blanks and commas", () => {
  assert.deepEqual(label(" One.test, *.Two.test.\tone.test,three"), { names: ["one.test", "*.two.test", "three"] });
  assert.deepEqual(label(""), { names: [] });
  assert.deepEqual(labelNames({}), { names: [] });
});

test("invalid names are ignored, and the first is named with what to use", () => {
  for (const [text, what] of [
    ["*", /^invalid label io\.dns11\.names: "\*" is ignored: a wildcard for every name is not possible: use/],
    ["*.com", /"\*\.com" is ignored: it covers a whole top-level domain: use a wildcard below/],
    ["a..b", /"a\.\.b" is ignored: use labels of at most 63 characters/],
    ["a.*.b", /"a\.\*\.b" is ignored: use labels/],
    ["10.0.0.1", /"10\.0\.0\.1" is ignored: it is an address: use a name/],
    ["x".repeat(64), /"x+.*" is ignored: use labels/],
    [`*${".a".repeat(17)}`, /is ignored: use a wildcard below at most 16 labels/],
    ["\u0007\u001b[2J.test", /is ignored: use labels/],
  ] as const) {
    const { names, warning } = label(`${text},ok.test`);
    assert.deepEqual(names, ["ok.test"], text);
    assert.match(warning ?? "", what);
  }
});

test("a container has a limited number of names, however long its label is", () => {
  const many = Array.from({ length: 20_000 }, (_, n) => `*.n${n}.test`);
  const { names, warning } = label(many.join(","));
  assert.equal(names.length, 64);
  assert.match(warning ?? "", /has too many names: the limit is 64 names in 4096 characters/);
  assert.ok((warning ?? "").length < 300);
  assert.equal(aliasWildcards(many, "net").names.length, 64);
  const long = label(`ok.test,${"a.".repeat(5_000)}test`);
  assert.deepEqual(long.names, ["ok.test"]);
  assert.match(long.warning ?? "", /too many names/);
});

test("only aliases that begin with *. are wildcards", () => {
  const { names, warning } = aliasWildcards(["web", "*.shop.test", "*", "x.*"], "net");
  assert.deepEqual(names, ["*.shop.test"]);
  assert.match(warning ?? "", /^invalid alias on network "net": "\*" is ignored/);
});
