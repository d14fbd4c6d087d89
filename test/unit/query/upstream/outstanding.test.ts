// Proves that the list of outstanding queries has the order of sending, whichever of them leaves.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Outstanding, type OutstandingQuery } from "../../../../src/query/upstream/outstanding.ts";

interface Named extends OutstandingQuery {
  readonly name: string;
}

function aQuery(name: string): Named {
  return { name, older: undefined, newer: undefined, isOutstanding: false };
}

// Empties it from the oldest on.
function drained(list: Outstanding<Named>): string {
  let all = "";
  for (let { oldest } = list; oldest !== undefined; { oldest } = list) {
    all += oldest.name;
    assert.equal(list.delete(oldest), true);
  }
  assert.equal(list.size, 0);
  return all;
}

test("queries are kept in the order of sending, without those that left: at both ends, and between", () => {
  for (const left of ["", "a", "d", "b", "bc", "cb", "ad", "abcd", "dcba"]) {
    const list = new Outstanding<Named>();
    const queries = new Map([..."abcd"].map((name) => [name, aQuery(name)]));
    for (const query of queries.values()) list.add(query);
    for (const name of left) assert.equal(list.delete(queries.get(name) as Named), true);
    assert.equal(list.size, 4 - left.length);
    assert.equal(drained(list), [..."abcd"].filter((name) => !left.includes(name)).join(""));
  }
});

test("one that left may be sent again, and leaves once", () => {
  const list = new Outstanding<Named>();
  const [first, second] = [aQuery("a"), aQuery("b")];
  assert.equal(list.delete(first), false);
  list.add(first);
  list.add(second);
  assert.equal(list.delete(first), true);
  assert.equal(list.delete(first), false);
  list.add(first);
  assert.equal(drained(list), "ba");
});
