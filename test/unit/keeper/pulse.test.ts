/**
 * The pulse: silence counts as far as the main process could have broken it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/config/limits.ts";
import { Pulse } from "../../../src/keeper/pulse.ts";
import type { ThreadState } from "../../../src/kernel/process.ts";

const LOOKS = Math.ceil(LIMITS.keeperSilentMs / LIMITS.keeperLookMs);

/** After how many looks it is over, of at most `looks`. */
function overAfter(
  stateAt: (look: number) => ThreadState | undefined,
  looks: number,
  everyMs: number = LIMITS.keeperLookMs,
): number {
  let look = 0;
  const pulse = new Pulse(0, () => stateAt(look));
  while (look < looks) {
    look++;
    if (pulse.isOver(look * everyMs)) return look;
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
    ranMs: look * LIMITS.keeperLookMs * share,
  });
  assert.equal(overAfter(running(1), 100), LOOKS + 1);
  assert.ok(overAfter(running(0.25), 100) >= (LIMITS.keeperSilentMs / LIMITS.keeperLookMs) * 4);
  assert.equal(overAfter(running(0), 1_000), Infinity, "it never got a processor");
});

test("whoever is looked into by a debugger may be silent", () => {
  assert.equal(
    overAfter(() => ({ letter: "t", isTraced: true, ranMs: 10 }), 1_000),
    Infinity,
  );
});

test("while the keeper itself, or the machine, stood still, nobody was listening", () => {
  const pulse = new Pulse(0, () => undefined);
  assert.equal(pulse.isOver(3_600_000), false);
});

test("whoever says beforehand that it will be silent may be, for so long, and once", () => {
  const pulse = new Pulse(0, () => undefined);
  pulse.allow(1_000);
  const last = (1_000 + LIMITS.keeperSilentMs) / LIMITS.keeperLookMs;
  for (let look = 1; look < last; look++) assert.equal(pulse.isOver(look * LIMITS.keeperLookMs), false, `${look}`);
  assert.equal(pulse.isOver(Math.ceil(last) * LIMITS.keeperLookMs), true);
  pulse.allow(1_000);
  pulse.beat(2_000);
  let looks = 0;
  while (!pulse.isOver(2_000 + ++looks * LIMITS.keeperLookMs));
  assert.equal(looks, LOOKS);
});

test("a beat begins anew", () => {
  const pulse = new Pulse(0, () => undefined);
  for (let look = 1; look < 100; look++) {
    assert.equal(pulse.isOver(look * LIMITS.keeperLookMs), false);
    if (look % 3 === 0) pulse.beat(look * LIMITS.keeperLookMs);
  }
});
