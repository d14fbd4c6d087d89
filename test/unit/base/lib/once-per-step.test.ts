import assert from "node:assert/strict";
import { test } from "node:test";

import { oncePerStep } from "../../../../src/base/lib/guard.ts";

test("work that many changes of a step ask for is done once, after them and before the next step", async () => {
  let times = 0;
  const change = oncePerStep(() => times++);
  const next = new Promise<number>((resolve) => setImmediate(() => resolve(times)));
  for (let each = 0; each < 1_000; each++) change();
  assert.equal(times, 0);
  assert.equal(await next, 1);
  change();
  await Promise.resolve();
  assert.equal(times, 2);
});
