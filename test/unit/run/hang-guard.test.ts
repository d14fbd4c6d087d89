import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { HangGuard } from "../../../src/run/lifecycle.ts";

test("the alarm is short only where no keeper watches, and stays armed at the end", () => {
  mock.timers.enable({ apis: ["setInterval"] });
  try {
    let isWatched = false;
    const armed: number[] = [];
    const guard = new HangGuard({ isWatched: () => isWatched, arm: (seconds) => armed.push(seconds) });
    mock.timers.tick(1_000);
    isWatched = true;
    mock.timers.tick(1_000);
    isWatched = false;
    guard.stop();
    mock.timers.tick(5_000);
    const [short, long] = [LIMITS.hangSeconds, LIMITS.watchedHangSeconds];
    assert.deepEqual(armed, [short, short, long, short]);
  } finally {
    mock.timers.reset();
  }
});
