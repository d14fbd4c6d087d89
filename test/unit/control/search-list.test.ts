// Proves that a search list is applied as the C library does, and bounded, because a container writes its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { ndotsOf, searchNames } from "../../../src/control/search-list.ts";
import { parseQuestion } from "../../../src/base/model/question-text.ts";

function names(name: string, search: readonly string[], options: readonly string[] = []): string[] {
  return searchNames(parseQuestion(name, "A"), { search, options }).map((question) => question.name);
}

test("ndots is one unless somebody says otherwise, the last one counts, and there is a highest one", () => {
  assert.deepEqual(
    [[], ["ndots:0"], ["ndots:2", "rotate", "ndots:5"], ["ndots:99"], ["ndots:x"]].map(ndotsOf),
    [1, 0, 5, 15, 1],
  );
});

test("with enough dots a name goes first as it is, otherwise last", () => {
  assert.deepEqual(names("web", ["a.test", "b.test."]), ["web.a.test", "web.b.test", "web"]);
  assert.deepEqual(names("web.n1", ["a.test"]), ["web.n1", "web.n1.a.test"]);
  assert.deepEqual(names("web", ["a.test"], ["ndots:0"]), ["web", "web.a.test"]);
});

test("a dot at its end, or an address, keeps a name as it is", () => {
  assert.deepEqual(names("web.", ["a.test"]), ["web"]);
  const [only, ...others] = searchNames(parseQuestion("192.0.2.1", undefined), { search: ["a.test"], options: [] });
  assert.deepEqual([only?.name, others], ["1.2.0.192.in-addr.arpa", []]);
});

test("what makes no name is passed over, and of a long list the first count", () => {
  assert.deepEqual(names("web", ["a b", "x".repeat(64), "ok.test"]), ["web.ok.test", "web"]);
  const many = Array.from({ length: 100 }, (_, index) => `d${index}.test`);
  assert.equal(names("web", many).length, LIMITS.lookupNames);
});
