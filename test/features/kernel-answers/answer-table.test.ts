// Proves that thousands of answers that have ended are deleted a little at a time, against a real table of the kernel.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import type { Share } from "../../../src/base/lib/share.ts";
import { AnswerTable } from "../../../src/features/kernel-answers/kernel/answer-table.ts";
import { KeyList } from "../../../src/features/kernel-answers/kernel/key-list.ts";
import { KEY_BYTES, VALUE_BYTES } from "../../../src/features/kernel-answers/kernel/layout.ts";
import { waitFor } from "../../support/rig/wait.ts";

const MANY = 5_000;
const LIMITS = { whole: MANY, each: MANY, always: 1 };

interface Filled {
  readonly table: AnswerTable;
  readonly keys: KeyList;
  readonly share: Share;
}

function filled(t: TestContext): Filled {
  const table = new AnswerTable(1, LIMITS);
  t.after(() => table.close());
  const [keys, share] = [new KeyList(KEY_BYTES), table.open()];
  const { key, value } = table.writer;
  key.fill(0);
  value.fill(0);
  for (let index = 0; index < MANY; index++) {
    key.writeUInt32LE(index);
    assert.ok(share.take(1) && table.writer.insert());
    keys.add(key);
  }
  return { table, keys, share };
}

function isThere({ table, keys }: Filled, index: number): boolean {
  return table.read(keys.at(index), Buffer.alloc(VALUE_BYTES));
}

test("of thousands of answers the first are deleted at once, the others with rounds of the event loop between them", async (t) => {
  const world = filled(t);
  const { table, keys, share } = world;
  assert.deepEqual([isThere(world, 0), isThere(world, MANY - 1), share.take(1)], [true, true, false]);
  table.delete(keys, share);
  assert.deepEqual([isThere(world, 0), isThere(world, MANY - 1)], [false, true]);
  assert.ok(share.taken > 0 && share.taken < MANY);
  // What the others have left is available at once.
  assert.ok(share.take(1));
  let rounds = 0;
  await waitFor("the last of them", () => (rounds++, share.taken === 1 ? true : undefined));
  assert.ok(rounds > 1);
  for (const index of [1, MANY / 2, MANY - 1]) assert.equal(isThere(world, index), false);
});

test("a table that is closed meanwhile deletes nothing more, and its number may be another descriptor's", async (t) => {
  const { table, keys, share } = filled(t);
  table.delete(keys, share);
  const { taken } = share;
  table.close();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(share.taken, taken);
});

test("an entry that is there stays as it is", (t) => {
  const { table, keys } = filled(t);
  table.writer.value.fill(1);
  assert.equal(table.writer.insert(), false);
  const found = Buffer.alloc(VALUE_BYTES);
  assert.ok(table.read(keys.at(MANY - 1), found));
  assert.deepEqual(found, Buffer.alloc(VALUE_BYTES));
});
