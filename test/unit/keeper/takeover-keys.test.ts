/**
 * Takeovers from a keeper that refuses alone: neither two keys of one namespace nor two failed takeovers lose anything.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";

import { closeDescriptors } from "../../../src/keeper/held-descriptors.ts";
import { LoneKeeper, hold } from "../../support/program/lone-keeper.ts";
import { waitFor } from "../../support/rig/wait.ts";

test("a namespace that is held under two keys is taken once", async () => {
  await using keeper = await LoneKeeper.start((main) => {
    for (const key of [1, 2]) hold(main, key, "1:1");
    hold(main, 3, "1:2");
  });
  const predecessor = await keeper.find();
  const before = readdirSync("/proc/self/fd").length;
  const taken = await predecessor.take();
  assert.deepEqual([...taken.keys()], ["1:1", "1:2"]);
  await waitFor("the other descriptor to be closed", () =>
    readdirSync("/proc/self/fd").length === before + taken.size ? true : undefined,
  );
  for (const namespace of taken.values()) closeDescriptors(namespace);
  predecessor.channel.close();
});

test("what two processes had begun to serve under one key is refused when both have failed", async () => {
  await using keeper = await LoneKeeper.start((main) => hold(main, 1, "1:1"));
  for (const id of ["1:2", "1:3"]) {
    const predecessor = await keeper.find();
    for (const namespace of (await predecessor.take()).values()) closeDescriptors(namespace);
    hold(predecessor.channel, 1, id);
    predecessor.channel.close();
  }
  const found = await keeper.find();
  found.channel.close();
  assert.equal(found.refusing, 3);
});
