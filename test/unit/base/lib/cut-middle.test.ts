// Proves that a long text keeps its ends, never more than its room, and no half of a character.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assert as assertAll, property, integer, string } from "fast-check";

import { cutMiddle } from "../../../../src/base/lib/text.ts";

test("names that differ at their ends still differ", () => {
  const cut = (name: string): string => cutMiddle(name, 20);
  assert.equal(cut("acme-platform-checkout-web-1"), "acme-pl…eckout-web-1");
  assert.notEqual(cut("acme-platform-payments-primary-1"), cut("acme-platform-payments-fallback-1"));
  assert.equal(cutMiddle("acme-platform-web-1", 12, ".."), "acme..-web-1");
});

test("what fits stays as it is, and what has no room is not longer than its room", () => {
  assert.equal(cutMiddle("web-1", 5), "web-1");
  assert.deepEqual(
    [0, 1, 2, 3].map((max) => cutMiddle("web-1", max)),
    ["", "w", "we", "…-1"],
  );
  const texts = string({ unit: "grapheme", maxLength: 40 });
  assertAll(
    property(texts, integer({ min: 0, max: 30 }), (text, max) => {
      const shown = cutMiddle(text, max);
      return [...shown].length <= Math.max(max, 0) && !/\p{Surrogate}/u.test(shown);
    }),
  );
});
