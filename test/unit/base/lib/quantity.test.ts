// Proves that durations and sizes are parsed and formatted.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { durationText, parseDuration, parseSize, sizeText } from "../../../../src/base/lib/quantity.ts";

const DURATIONS: readonly (readonly [string | number, number | undefined])[] = [
  [0, 0],
  ["0", 0],
  [5, 5_000],
  [4.4, 4_400],
  ["4.4s", 4_400],
  ["250ms", 250],
  ["90", 90_000],
  ["5m", 300_000],
  ["1h30m", 5_400_000],
  ["1d", 86_400_000],
  ["", undefined],
  [" 5s", undefined],
  ["5 s", undefined],
  ["5S", undefined],
  ["5w", undefined],
  ["-5s", undefined],
  [-5, undefined],
  ["s", undefined],
  [".5s", undefined],
  ["5.", undefined],
  ["1h30", undefined],
  ["1e3", undefined],
  [1e300, undefined],
  ["9".repeat(400), undefined],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined],
];

for (const [input, ms] of DURATIONS) {
  test(`${JSON.stringify(input)} is ${ms === undefined ? "an invalid duration" : `${ms} ms`}`, () => {
    assert.equal(parseDuration(input), ms);
  });
}

const SIZES: readonly (readonly [string | number, number | undefined])[] = [
  [0, 0],
  [65_536, 65_536],
  ["65536", 65_536],
  ["512b", 512],
  ["64KiB", 65_536],
  ["64k", 65_536],
  ["32MiB", 2 ** 25],
  ["32m", 2 ** 25],
  ["32M", 2 ** 25],
  ["1GiB", 2 ** 30],
  ["1g", 2 ** 30],
  ["", undefined],
  ["32 MiB", undefined],
  ["1.5g", undefined],
  [1.5, undefined],
  ["-1", undefined],
  ["32MB", undefined],
  ["1t", undefined],
  ["9".repeat(30), undefined],
];

for (const [input, bytes] of SIZES) {
  test(`${JSON.stringify(input)} is ${bytes === undefined ? "an invalid size" : `${bytes} bytes`}`, () => {
    assert.equal(parseSize(input), bytes);
  });
}

for (const [ms, text] of [
  [0, "0"],
  [250, "250ms"],
  [4_400, "4.4s"],
  [5_000, "5s"],
  [90_000, "90s"],
  [300_000, "5m"],
  [86_400_000, "1d"],
  [90_000_000, "25h"],
] as const) {
  test(`${ms} ms are written "${text}"`, () => assert.equal(durationText(ms), text));
}

for (const [bytes, text] of [
  [0, "0"],
  [1000, "1000B"],
  [65_536, "64KiB"],
  [2 ** 25, "32MiB"],
  [2 ** 31, "2GiB"],
] as const) {
  test(`${bytes} bytes are written "${text}"`, () => assert.equal(sizeText(bytes), text));
}

test("what is written reads as what it was", () => {
  fc.assert(fc.property(fc.nat({ max: 2 ** 40 }), (ms) => assert.equal(parseDuration(durationText(ms)), ms)));
  fc.assert(fc.property(fc.nat({ max: 2 ** 40 }), (bytes) => assert.equal(parseSize(sizeText(bytes)), bytes)));
});
