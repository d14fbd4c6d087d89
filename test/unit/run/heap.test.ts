import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { onceStarted } from "../../../src/run/heap.ts";

test("what a start leaves in the heap is collected some time after it, without another allocation", async () => {
  const left = new WeakRef({ some: "garbage" });
  // An object that was just made is alive until the end of its task.
  await new Promise(setImmediate);
  mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  try {
    let isDone = false;
    onceStarted(
      () => true,
      () => (isDone = true),
    );
    mock.timers.tick(LIMITS.startCheckMs);
    assert.ok(isDone);
    mock.timers.tick(LIMITS.giveBackAfterMs);
    assert.equal(left.deref(), undefined);
    assert.equal("gc" in globalThis, false);
  } finally {
    mock.timers.reset();
  }
});
