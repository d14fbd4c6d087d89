// Proves the decisions that follow crashes, with a simulated clock.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { CrashHistory } from "../../../../src/run/quarantine/quarantines.ts";

const parent = mkdtempSync(join(tmpdir(), "d11-deaths-"));
after(() => rmSync(parent, { recursive: true }));

const SOON_MS = 10_000;
const attaching = (containerId: string) => ({ doing: "attaching", containerId }) as const;
const answering = (containerId: string) => ({ doing: "answering", containerId }) as const;

class Runs {
  readonly folder = mkdtempSync(join(parent, "x-"));
  nowMs = 1_000_000;

  // A process that starts after the previous one ended as `words` say.
  next(context: ReturnType<typeof attaching | typeof answering> | null | undefined, afterMs = SOON_MS): CrashHistory {
    this.nowMs += afterMs;
    const history = this.open();
    history.recordEnd(context);
    return history;
  }

  open(): CrashHistory {
    return new CrashHistory(this.folder, assert.ifError, () => this.nowMs);
  }
}

test("one crash has no consequence, two make a suspect, three a quarantine", () => {
  const runs = new Runs();
  const one = runs.next(attaching("a"));
  assert.deepEqual([one.isSuspect("a"), one.quarantineOf("a")], [false, undefined]);
  const two = runs.next(attaching("a"));
  assert.deepEqual([two.isSuspect("a"), two.isSuspect("b"), two.quarantineOf("a")], [true, false, undefined]);
  const three = runs.next(attaching("a"));
  const { doing, times, untilMs } = three.quarantineOf("a") ?? assert.fail();
  assert.deepEqual([doing, times, untilMs], ["attaching", 1, runs.nowMs + LIMITS.quarantineMs]);
  assert.equal(three.isSuspect("a"), false, "a quarantined container is not attached at all");
  assert.equal(three.nextEndMs, untilMs);
});

test("crashes far apart, of several containers, or without a container, are not consecutive", () => {
  for (const [contextOf, afterMs] of [
    [() => attaching("a"), LIMITS.crashWindowMs + 1],
    [(index: number) => answering(index % 2 === 0 ? "a" : "b"), SOON_MS],
    [(index: number) => (index % 3 === 2 ? null : answering("a")), SOON_MS],
    [(index: number) => (index % 3 === 2 ? undefined : answering("a")), SOON_MS],
  ] as const) {
    const runs = new Runs();
    for (let index = 0; index < 12; index++) runs.next(contextOf(index), afterMs);
    assert.deepEqual([runs.open().quarantineOf("a"), runs.open().quarantineOf("b")], [undefined, undefined]);
  }
});

test("attaching and answering are distinguished, and both count for the container", () => {
  const runs = new Runs();
  runs.next(attaching("a"));
  runs.next(attaching("a"));
  assert.equal(runs.next(answering("a")).quarantineOf("a")?.doing, "answering");
});

test("a quarantine ends, and the next one is twice as long, up to a limit", () => {
  const runs = new Runs();
  const lengths: number[] = [];
  for (let round = 0; round < 7; round++) {
    for (let crash = 0; crash < LIMITS.crashesUntilQuarantine; crash++) runs.next(answering("a"));
    const { untilMs } = runs.open().quarantineOf("a") ?? assert.fail();
    lengths.push((untilMs - runs.nowMs) / LIMITS.quarantineMs);
    runs.nowMs = untilMs;
    assert.equal(runs.open().quarantineOf("a"), undefined);
  }
  assert.deepEqual(lengths, [1, 2, 4, 8, 16, 24, 24]);
});

test("a released container starts with a clean history", () => {
  const runs = new Runs();
  for (let crash = 0; crash < LIMITS.crashesUntilQuarantine; crash++) runs.next(attaching("a"));
  const history = runs.open();
  assert.deepEqual([history.release("a"), history.release("a"), history.quarantineOf("a")], [true, false, undefined]);
  assert.equal(runs.open().quarantineOf("a"), undefined, "also on disk");
  assert.equal(runs.next(attaching("a")).isSuspect("a"), false);
});

test("the number of remembered containers is limited", () => {
  const runs = new Runs();
  for (let container = 0; container < LIMITS.quarantinesKept + 5; container++) {
    for (let crash = 0; crash < LIMITS.crashesUntilQuarantine; crash++) runs.next(attaching(`c${container}`), 1);
  }
  const history = runs.open();
  const kept = Array.from(
    { length: LIMITS.quarantinesKept + 5 },
    (_, index) => history.quarantineOf(`c${index}`) !== undefined,
  );
  assert.deepEqual([kept.filter(Boolean).length, kept.at(-1), kept[0]], [LIMITS.quarantinesKept, true, false]);
});

test("a damaged file means no crashes, and without a folder the history is kept in memory", () => {
  const runs = new Runs();
  for (const text of ["", "{", "[]", '{"deaths":1}', '{"deaths":[{}],"quarantines":{"a":{"untilMs":"x"}}}']) {
    writeFileSync(join(runs.folder, "deaths.json"), text);
    assert.equal(runs.open().quarantineOf("a"), undefined, text);
  }
  const errors: unknown[] = [];
  const inMemory = new CrashHistory(
    join(runs.folder, "none"),
    (error) => errors.push(error),
    () => runs.nowMs,
  );
  for (let crash = 0; crash < LIMITS.crashesUntilQuarantine; crash++) inMemory.recordEnd(attaching("a"));
  assert.ok(inMemory.quarantineOf("a") !== undefined && errors.length > 0);
});

test("after the clock was set back a quarantine lasts as long as it would have from then on, also in the next process", () => {
  const runs = new Runs();
  for (let index = 0; index < 3; index++) runs.next(attaching("a"));
  runs.nowMs -= LIMITS.quarantineMsMax;
  const untilMs = runs.nowMs + LIMITS.quarantineMs;
  assert.equal(runs.open().nextEndMs, untilMs);
  runs.nowMs += LIMITS.quarantineMs / 2;
  assert.equal(runs.open().quarantineOf("a")?.untilMs, untilMs);
  runs.nowMs = untilMs;
  assert.equal(runs.open().quarantineOf("a"), undefined);
});

test("crashes from before the clock was set back by more than a minute are not consecutive", () => {
  const runs = new Runs();
  runs.next(attaching("a"));
  runs.next(attaching("a"));
  runs.nowMs -= LIMITS.crashWindowMs * 2;
  assert.equal(runs.open().isSuspect("a"), false);
});
