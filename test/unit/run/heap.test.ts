import assert from "node:assert/strict";
import { test } from "node:test";

import { collectGarbage } from "../../../src/run/heap.ts";

/** In a function of its own, so that nothing else has ever referred to it. */
function refToGarbage(): WeakRef<object> {
  return new WeakRef({ some: "garbage" });
}

test("what nobody refers to any more is collected when it is asked for", async () => {
  const left = refToGarbage();
  // An object that was just made is alive until the end of its task.
  await new Promise(setImmediate);
  collectGarbage();
  assert.equal(left.deref(), undefined);
  assert.equal("gc" in globalThis, false);
});
