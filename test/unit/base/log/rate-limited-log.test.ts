// Proves that repetitions are logged once and counted, that no count is lost, and that neither one flapping subject nor
// thousands of them at once can fill the log.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { Log } from "../../../../src/base/log/log.ts";
import { RateLimitedLog } from "../../../../src/base/log/rate-limited-log.ts";

type Line = { readonly level: string; readonly text: string; readonly repeated?: number; readonly suppressed?: number };

function rig(): { lines: Line[]; limitedLog: RateLimitedLog; pass: (ms: number) => void } {
  const lines: Line[] = [];
  const at = (level: string) => (fields: object, text: string) => void lines.push({ ...fields, level, text });
  let now = 0;
  const limitedLog = new RateLimitedLog({ info: at("info"), warn: at("warn") } as unknown as Log, () => now);
  return { lines, limitedLog, pass: (ms) => void (now += ms) };
}

test("a repeated line is logged once, and its count when the time is over", () => {
  const { lines, limitedLog, pass } = rig();
  for (let index = 0; index < 50; index++) {
    limitedLog.log("warn", "web", { container: "web", code: "UNVERIFIED" }, "not attached");
    pass(1_000);
  }
  assert.equal(lines.length, 1);
  pass(LIMITS.logRepeatMs);
  limitedLog.sweep();
  assert.equal(lines.length, 2);
  assert.equal(lines[1]?.repeated, 49);
  pass(LIMITS.logRepeatMs);
  limitedLog.sweep();
  assert.equal(lines.length, 2, "nothing more without further events");
});

test("ongoing repetitions give one line each period, with the count", () => {
  const { lines, limitedLog, pass } = rig();
  for (let index = 0; index < 3; index++) {
    for (let each = 0; each < 10; each++) limitedLog.log("warn", "web", { a: 1 }, "text");
    pass(LIMITS.logRepeatMs);
  }
  assert.deepEqual(
    lines.map(({ repeated }) => repeated),
    [undefined, 9, 9],
  );
});

test("different lines about one subject are logged at once, up to a limit", () => {
  const { lines, limitedLog } = rig();
  for (let index = 0; index < 100; index++) {
    const isUp = index % 2 === 1;
    limitedLog.log(isUp ? "info" : "warn", "10.0.0.1", { index }, isUp ? "back" : "down", {
      topic: "upstream",
    });
  }
  assert.equal(lines.length, LIMITS.logLinesPerSubject);
  limitedLog.close();
  assert.equal(lines.at(-1)?.repeated, 100 - LIMITS.logLinesPerSubject);
  assert.equal(lines.at(-1)?.text, "back", "the count belongs to the last line");
});

test("different subjects are independent", () => {
  const { lines, limitedLog } = rig();
  for (const name of ["a", "b", "c"]) limitedLog.log("warn", name, { name }, "text");
  assert.equal(lines.length, 3);
});

test("ten thousand lines at once are limited, and the number of suppressed lines is logged", () => {
  const { lines, limitedLog, pass } = rig();
  for (let index = 0; index < 10_000; index++) limitedLog.log("warn", `c${index}`, { index }, "not attached");
  assert.equal(lines.length, LIMITS.logOwnersPerKind);
  pass(LIMITS.logKindMs);
  limitedLog.sweep();
  assert.equal(lines.length, LIMITS.logOwnersPerKind + 1);
  assert.equal(lines.at(-1)?.suppressed, 10_000 - LIMITS.logOwnersPerKind);
});

test("many lines of some containers leave room for the first line of another", () => {
  const { lines, limitedLog } = rig();
  for (let index = 0; index < 100 * LIMITS.logLinesPerOwner; index++) {
    limitedLog.line("warn", `noisy${index % 100}`, { index }, "lookup failed");
  }
  assert.equal(lines.length, 100 + LIMITS.logLinesPerKind);
  limitedLog.line("warn", "quiet", {}, "lookup failed");
  assert.equal(lines.length, 101 + LIMITS.logLinesPerKind);
});

test("one container has a share of the lines of a kind", () => {
  const { lines, limitedLog } = rig();
  for (let index = 0; index < 100; index++) limitedLog.line("warn", "noisy", { index }, "lookup failed");
  assert.equal(lines.length, LIMITS.logLinesPerOwner);
});

test("a subject with its own time is logged again as soon as that is over", () => {
  const { lines, limitedLog, pass } = rig();
  const topic = { repeatMs: LIMITS.logServerMs };
  for (let index = 0; index < 20; index++) limitedLog.log("warn", "10.0.0.1", { index }, "down", topic);
  assert.equal(lines.length, LIMITS.logLinesPerSubject);
  pass(LIMITS.logServerMs);
  limitedLog.log("warn", "10.0.0.1", { index: 20 }, "down", topic);
  assert.equal(lines.length, LIMITS.logLinesPerSubject + 1);
});
