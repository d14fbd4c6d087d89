/**
 * Heartbeat: only time in which the main process could have sent one counts as silence.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { KEEPER_LIMITS } from "../../../src/keeper/limits.ts";
import { Heartbeat } from "../../../src/keeper/peer-process.ts";
import type { ThreadState } from "../../../src/kernel/process.ts";

const CHECKS = Math.ceil(KEEPER_LIMITS.silentMs / KEEPER_LIMITS.pollMs);

/** After how many checks it times out, of at most `checks`. */
function timesOutAfter(
  stateAt: (check: number) => ThreadState | undefined,
  checks: number,
  everyMs: number = KEEPER_LIMITS.pollMs,
): number {
  let check = 0;
  const pulse = new Heartbeat(0, () => stateAt(check));
  while (check < checks) {
    check++;
    if (pulse.check(check * everyMs)) return check;
  }
  return Infinity;
}

test("all time counts while the process sleeps, is stopped, or has no visible state", () => {
  for (const letter of ["S", "T"]) {
    assert.equal(
      timesOutAfter(() => ({ letter, isTraced: false, ranMs: 10 }), 100),
      CHECKS,
    );
  }
  assert.equal(
    timesOutAfter(() => undefined, 100),
    CHECKS,
  );
});

test("time in which it waits for the kernel counts little, but counts", () => {
  assert.equal(
    timesOutAfter(() => ({ letter: "D", isTraced: false, ranMs: 10 }), 1_000),
    (KEEPER_LIMITS.silentMs / KEEPER_LIMITS.pollMs) * KEEPER_LIMITS.kernelWaitDivisor,
  );
});

test("while it runs, only its CPU time counts: a busy machine is not its fault", () => {
  const running = (share: number) => (check: number) => ({
    letter: "R",
    isTraced: false,
    ranMs: check * KEEPER_LIMITS.pollMs * share,
  });
  assert.equal(timesOutAfter(running(1), 100), CHECKS + 1);
  assert.ok(timesOutAfter(running(0.25), 100) >= (KEEPER_LIMITS.silentMs / KEEPER_LIMITS.pollMs) * 4);
  assert.equal(timesOutAfter(running(0), 1_000), Infinity, "it never got a processor");
});

test("a traced process may be silent", () => {
  assert.equal(
    timesOutAfter(() => ({ letter: "t", isTraced: true, ranMs: 10 }), 1_000),
    Infinity,
  );
});

test("time in which the keeper or the machine was suspended does not count", () => {
  const pulse = new Heartbeat(0, () => undefined);
  assert.equal(pulse.check(3_600_000), false);
});

test("a heartbeat resets the silence", () => {
  const pulse = new Heartbeat(0, () => undefined);
  for (let check = 1; check < 100; check++) {
    assert.equal(pulse.check(check * KEEPER_LIMITS.pollMs), false);
    if (check % 3 === 0) pulse.beat(check * KEEPER_LIMITS.pollMs);
  }
});
