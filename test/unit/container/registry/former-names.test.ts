// Proves which former names of containers are remembered, and how many.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { FormerNames } from "../../../../src/container/registry/former-addresses.ts";
import { aContainer } from "../../../support/scripted/builders.ts";

test("a name until its container is renamed, for as long as that runs", () => {
  const former = new FormerNames(() => 7);
  const [queue, backlog] = [aContainer({ id: "q", name: "queue" }), aContainer({ id: "q", name: "backlog" })];
  former.note(queue, queue);
  assert.deepEqual(former.list(), []);
  former.note(queue, backlog);
  former.note(backlog, aContainer({ id: "q", name: "later" }));
  assert.deepEqual(former.list(), [
    { containerId: "q", name: "queue", atMs: 7 },
    { containerId: "q", name: "backlog", atMs: 7 },
  ]);
  former.forget("other");
  assert.equal(former.list().length, 2);
  former.forget("q");
  assert.deepEqual(former.list(), []);
});

test("the oldest are forgotten when there are too many", () => {
  const former = new FormerNames();
  for (let index = 0; index < LIMITS.formerNames + 3; index++)
    former.note(aContainer({ id: "q", name: `n${index}` }), aContainer({ id: "q", name: `n${index + 1}` }));
  assert.deepEqual([former.list().length, former.list()[0]?.name], [LIMITS.formerNames, "n3"]);
});
