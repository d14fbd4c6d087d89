// Proves that what happens again and again is told once and counted, that nothing is forgotten, and that neither one
// flapping subject nor thousands of them at once can fill a log.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { Log } from "../../../../src/base/log/log.ts";
import { RateLimitedLog } from "../../../../src/base/log/rate-limited-log.ts";

type Line = { readonly level: string; readonly text: string; readonly repeated?: number; readonly heldBack?: number };

function rig(): { lines: Line[]; repeats: RateLimitedLog; pass: (ms: number) => void } {
  const lines: Line[] = [];
  const at = (level: string) => (fields: object, text: string) => void lines.push({ ...fields, level, text });
  let now = 0;
  const repeats = new RateLimitedLog({ info: at("info"), warn: at("warn") } as unknown as Log, () => now);
  return { lines, repeats, pass: (ms) => void (now += ms) };
}

test("the same about the same one is told once, and how often it was when the time is over", () => {
  const { lines, repeats, pass } = rig();
  for (let index = 0; index < 50; index++) {
    repeats.log("warn", "web", { container: "web", code: "UNVERIFIED" }, "not attached");
    pass(1_000);
  }
  assert.equal(lines.length, 1);
  pass(LIMITS.logRepeatMs);
  repeats.sweep();
  assert.equal(lines.length, 2);
  assert.equal(lines[1]?.repeated, 49);
  pass(LIMITS.logRepeatMs);
  repeats.sweep();
  assert.equal(lines.length, 2, "and nothing more when nothing more has happened");
});

test("it happens on: each time again one line, with the number of those between", () => {
  const { lines, repeats, pass } = rig();
  for (let index = 0; index < 3; index++) {
    for (let each = 0; each < 10; each++) repeats.log("warn", "web", { a: 1 }, "text");
    pass(LIMITS.logRepeatMs);
  }
  assert.deepEqual(
    lines.map(({ repeated }) => repeated),
    [undefined, 9, 9],
  );
});

test("news about the same one is told at once, until there is too much of it", () => {
  const { lines, repeats } = rig();
  for (let index = 0; index < 100; index++) {
    const isUp = index % 2 === 1;
    repeats.log(isUp ? "info" : "warn", "10.0.0.1", { index }, isUp ? "back" : "down", "nameserver");
  }
  assert.equal(lines.length, LIMITS.logLinesPerSubject);
  repeats.close();
  assert.equal(lines.at(-1)?.repeated, 100 - LIMITS.logLinesPerSubject);
  assert.equal(lines.at(-1)?.text, "back", "the count stands with what happened last");
});

test("different ones do not hide each other", () => {
  const { lines, repeats } = rig();
  for (const name of ["a", "b", "c"]) repeats.log("warn", name, { name }, "text");
  assert.equal(lines.length, 3);
});

test("ten thousand at once are cut short, and the number of lines that were not told is", () => {
  const { lines, repeats, pass } = rig();
  for (let index = 0; index < 10_000; index++) repeats.log("warn", `c${index}`, { index }, "not attached");
  assert.equal(lines.length, LIMITS.logLinesPerKind);
  pass(LIMITS.logKindMs);
  repeats.sweep();
  assert.equal(lines.length, LIMITS.logLinesPerKind + 1);
  assert.equal(lines.at(-1)?.heldBack, 10_000 - LIMITS.logLinesPerKind);
});
