// Proves which word is suggested for a mistyped one, and that distant words are not.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nearest } from "../../../../src/base/lib/nearest.ts";

const WORDS = ["size", "stale", "cache", "max-ttl", "min-ttl", "negative", "negative-without-soa"];

for (const [word, expected] of [
  ["sise", "size"],
  ["chace", "cache"],
  ["cahce", "cache"],
  ["sizes", "size"],
  ["caches", "cache"],
  ["max-tll", "max-ttl"],
  ["max_ttl", "max-ttl"],
  ["negativ", "negative"],
  ["negative-without-soas", "negative-without-soa"],
  ["size", "size"],
  ["x", undefined],
  ["", undefined],
  ["servers", undefined],
  // Only one of two neighbours is where the other one was: that is no swap.
  ["stxxl", undefined],
  ["axxhe", undefined],
  ["x".repeat(10_000), undefined],
] as const) {
  test(`"${word.slice(0, 20)}" is ${expected === undefined ? "too far from every word" : `closest to "${expected}"`}`, () => {
    assert.equal(nearest(word, WORDS), expected);
  });
}
