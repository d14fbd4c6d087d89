// Proves that a search list is applied as the C library does, and that its length is bounded, because a container writes it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { ndotsOf, searchNames } from "../../../../src/control/causes/client-causes.ts";
import { parseQuestion } from "../../../../src/base/model/name-query.ts";

function names(name: string, search: readonly string[], options: readonly string[] = []): string[] {
  return searchNames(parseQuestion(name, "A"), { search, options }).map((question) => question.name);
}

test("ndots is 1 by default, the last one is used, and there is a maximum", () => {
  assert.deepEqual(
    [[], ["ndots:0"], ["ndots:2", "rotate", "ndots:5"], ["ndots:99"], ["ndots:x"]].map(ndotsOf),
    [1, 0, 5, 15, 1],
  );
});

test("a name with enough dots is tried first as it is, otherwise last", () => {
  assert.deepEqual(names("web", ["a.test", "b.test."]), ["web.a.test", "web.b.test", "web"]);
  assert.deepEqual(names("web.n1", ["a.test"]), ["web.n1", "web.n1.a.test"]);
  assert.deepEqual(names("web", ["a.test"], ["ndots:0"]), ["web", "web.a.test"]);
});

test("a name with a trailing dot, or an address, is not completed", () => {
  assert.deepEqual(names("web.", ["a.test"]), ["web"]);
  const [only, ...others] = searchNames(parseQuestion("192.0.2.1", undefined), { search: ["a.test"], options: [] });
  assert.deepEqual([only?.name, others], ["1.2.0.192.in-addr.arpa", []]);
});

test("domains that result in an invalid name are skipped, and a long list is cut", () => {
  assert.deepEqual(names("web", ["a b", "x".repeat(64), "ok.test"]), ["web.ok.test", "web"]);
  const many = Array.from({ length: 100 }, (_, index) => `d${index}.test`);
  assert.equal(names("web", many).length, LIMITS.lookupNames);
});
