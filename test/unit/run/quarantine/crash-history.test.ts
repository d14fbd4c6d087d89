// Proves the decisions that follow crashes, with a simulated clock.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { CrashHistory } from "../../../../src/run/quarantine/crash-history.ts";

const parent = mkdtempSync(join(tmpdir(), "d11-deaths-"));
after(() => rmSync(parent, { recursive: true }));

const SOON_MS = 10_000;
const attaching = (containerId: string) => ({ doing: "attaching", containerId }) as const;
const answering = (containerId: string) => ({ doing: "answering", containerId }) as const;

class Lives {
  readonly folder = mkdtempSync(join(parent, "x-"));
  nowMs = 1_000_000;

  // A process that starts after the previous one ended as `words` say.
  next(words: ReturnType<typeof attaching | typeof answering> | null | undefined, afterMs = SOON_MS): CrashHistory {
    this.nowMs += afterMs;
    const deaths = this.look();
    deaths.recordEnd(words);
    return deaths;
  }

  look(): CrashHistory {
    return new CrashHistory(this.folder, assert.ifError, () => this.nowMs);
  }
}

test("one crash has no consequence, two make a suspect, three a quarantine", () => {
  const lives = new Lives();
  const one = lives.next(attaching("a"));
  assert.deepEqual([one.isSuspect("a"), one.quarantineOf("a")], [false, undefined]);
  const two = lives.next(attaching("a"));
  assert.deepEqual([two.isSuspect("a"), two.isSuspect("b"), two.quarantineOf("a")], [true, false, undefined]);
  const three = lives.next(attaching("a"));
  const { doing, times, untilMs } = three.quarantineOf("a") ?? assert.fail();
  assert.deepEqual([doing, times, untilMs], ["attaching", 1, lives.nowMs + LIMITS.quarantineMs]);
  assert.equal(three.isSuspect("a"), false, "a quarantined container is not attached at all");
  assert.equal(three.nextEndMs, untilMs);
});

test("crashes far apart, of several containers, or without a container, are not consecutive", () => {
  for (const lives of [
    [() => attaching("a"), LIMITS.crashWindowMs + 1],
    [(index: number) => answering(index % 2 === 0 ? "a" : "b"), SOON_MS],
    [(index: number) => (index % 3 === 2 ? null : answering("a")), SOON_MS],
    [(index: number) => (index % 3 === 2 ? undefined : answering("a")), SOON_MS],
  ] as const) {
    const world = new Lives();
    for (let index = 0; index < 12; index++) world.next(lives[0](index), lives[1]);
    assert.deepEqual([world.look().quarantineOf("a"), world.look().quarantineOf("b")], [undefined, undefined]);
  }
});

test("attaching and answering are distinguished, and both count for the container", () => {
  const lives = new Lives();
  lives.next(attaching("a"));
  lives.next(attaching("a"));
  assert.equal(lives.next(answering("a")).quarantineOf("a")?.doing, "answering");
});

test("a quarantine ends, and the next one is twice as long, up to a limit", () => {
  const lives = new Lives();
  const lengths: number[] = [];
  for (let round = 0; round < 7; round++) {
    for (let death = 0; death < LIMITS.crashesUntilQuarantine; death++) lives.next(answering("a"));
    const { untilMs } = lives.look().quarantineOf("a") ?? assert.fail();
    lengths.push((untilMs - lives.nowMs) / LIMITS.quarantineMs);
    lives.nowMs = untilMs;
    assert.equal(lives.look().quarantineOf("a"), undefined);
  }
  assert.deepEqual(lengths, [1, 2, 4, 8, 16, 24, 24]);
});

test("a released container starts with a clean history", () => {
  const lives = new Lives();
  for (let death = 0; death < LIMITS.crashesUntilQuarantine; death++) lives.next(attaching("a"));
  const deaths = lives.look();
  assert.deepEqual([deaths.release("a"), deaths.release("a"), deaths.quarantineOf("a")], [true, false, undefined]);
  assert.equal(lives.look().quarantineOf("a"), undefined, "also on disk");
  assert.equal(lives.next(attaching("a")).isSuspect("a"), false);
});

test("the number of remembered containers is limited", () => {
  const lives = new Lives();
  for (let container = 0; container < LIMITS.quarantinesKept + 5; container++) {
    for (let death = 0; death < LIMITS.crashesUntilQuarantine; death++) lives.next(attaching(`c${container}`), 1);
  }
  const deaths = lives.look();
  const kept = Array.from({ length: LIMITS.quarantinesKept + 5 }, (_, index) => deaths.quarantineOf(`c${index}`) !== undefined);
  assert.deepEqual([kept.filter(Boolean).length, kept.at(-1), kept[0]], [LIMITS.quarantinesKept, true, false]);
});

test("a damaged file means no crashes, and without a folder the history is kept in memory", () => {
  const lives = new Lives();
  for (const text of ["", "{", "[]", '{"deaths":1}', '{"deaths":[{}],"quarantines":{"a":{"untilMs":"x"}}}']) {
    writeFileSync(join(lives.folder, "deaths.json"), text);
    assert.equal(lives.look().quarantineOf("a"), undefined, text);
  }
  const told: unknown[] = [];
  const nowhere = new CrashHistory(
    join(lives.folder, "none"),
    (error) => told.push(error),
    () => lives.nowMs,
  );
  for (let death = 0; death < LIMITS.crashesUntilQuarantine; death++) nowhere.recordEnd(attaching("a"));
  assert.ok(nowhere.quarantineOf("a") !== undefined && told.length > 0);
});
