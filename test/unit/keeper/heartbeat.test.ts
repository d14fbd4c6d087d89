/**
 * The pulse: silence counts as far as the main process could have broken it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { KEEPER_LIMITS } from "../../../src/keeper/limits.ts";
import { Heartbeat } from "../../../src/keeper/heartbeat.ts";
import type { ThreadState } from "../../../src/kernel/process.ts";

const LOOKS = Math.ceil(KEEPER_LIMITS.silentMs / KEEPER_LIMITS.lookMs);

/** After how many looks it is over, of at most `looks`. */
function overAfter(
  stateAt: (look: number) => ThreadState | undefined,
  looks: number,
  everyMs: number = KEEPER_LIMITS.lookMs,
): number {
  let look = 0;
  const pulse = new Heartbeat(0, () => stateAt(look));
  while (look < looks) {
    look++;
    if (pulse.check(look * everyMs)) return look;
  }
  return Infinity;
}

test("asleep, or stopped, every moment counts; so it does where nothing can be seen", () => {
  for (const letter of ["S", "D", "T"]) {
    assert.equal(
      overAfter(() => ({ letter, isTraced: false, ranMs: 10 }), 100),
      LOOKS,
    );
  }
  assert.equal(
    overAfter(() => undefined, 100),
    LOOKS,
  );
});

test("running, only what it ran counts: a busy machine is not its fault", () => {
  const running = (share: number) => (look: number) => ({
    letter: "R",
    isTraced: false,
    ranMs: look * KEEPER_LIMITS.lookMs * share,
  });
  assert.equal(overAfter(running(1), 100), LOOKS + 1);
  assert.ok(overAfter(running(0.25), 100) >= (KEEPER_LIMITS.silentMs / KEEPER_LIMITS.lookMs) * 4);
  assert.equal(overAfter(running(0), 1_000), Infinity, "it never got a processor");
});

test("whoever is looked into by a debugger may be silent", () => {
  assert.equal(
    overAfter(() => ({ letter: "t", isTraced: true, ranMs: 10 }), 1_000),
    Infinity,
  );
});

test("while the keeper itself, or the machine, stood still, nobody was listening", () => {
  const pulse = new Heartbeat(0, () => undefined);
  assert.equal(pulse.check(3_600_000), false);
});

test("whoever says beforehand that it will be silent may be, for so long, and once", () => {
  const pulse = new Heartbeat(0, () => undefined);
  pulse.allowSilence(1_000);
  const last = (1_000 + KEEPER_LIMITS.silentMs) / KEEPER_LIMITS.lookMs;
  for (let look = 1; look < last; look++) assert.equal(pulse.check(look * KEEPER_LIMITS.lookMs), false, `${look}`);
  assert.equal(pulse.check(Math.ceil(last) * KEEPER_LIMITS.lookMs), true);
  pulse.allowSilence(1_000);
  pulse.beat(2_000);
  let looks = 0;
  while (!pulse.check(2_000 + ++looks * KEEPER_LIMITS.lookMs));
  assert.equal(looks, LOOKS);
});

test("a beat begins anew", () => {
  const pulse = new Heartbeat(0, () => undefined);
  for (let look = 1; look < 100; look++) {
    assert.equal(pulse.check(look * KEEPER_LIMITS.lookMs), false);
    if (look % 3 === 0) pulse.beat(look * KEEPER_LIMITS.lookMs);
  }
});
