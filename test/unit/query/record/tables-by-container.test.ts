/**
 * Proves that the table of a container is one for all its clients, is kept for a while after the last of them, and is found again
 * by the container's next one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { TablesByContainer } from "../../../../src/query/record/tables-by-container.ts";

const LINGER_MS = 1_000;

class Rig {
  nowMs = 0;
  readonly tables = new TablesByContainer<{ readonly made: number }>(LINGER_MS, () => this.nowMs);
  #made = 0;

  open(containerId: string): number {
    return this.tables.open(containerId, () => ({ made: ++this.#made })).made;
  }

  get all(): number[] {
    return [...this.tables.all()].map(({ made }) => made);
  }
}

test("two clients share a table; the next one finds it as long as it is kept", () => {
  const rig = new Rig();
  assert.deepEqual([rig.open("a"), rig.open("a"), rig.open("b")], [1, 1, 2]);
  rig.tables.close("a", () => assert.fail("another client writes it"));
  rig.tables.close("a", () => true);
  assert.deepEqual(rig.all, [2, 1]);
  rig.nowMs += LINGER_MS - 1;
  assert.equal(rig.open("a"), 1);
  rig.nowMs += LINGER_MS;
  assert.deepEqual(rig.all, [2, 1], "it is in use again");
});

test("those of ended containers are dropped when their time is over, in the order of their ends", () => {
  const rig = new Rig();
  for (const id of ["a", "b", "c", "d"]) rig.open(id);
  rig.tables.close("b", () => true);
  rig.nowMs += LINGER_MS / 2;
  rig.tables.close("a", () => true);
  rig.tables.close("c", () => false);
  rig.tables.close("never opened", () => true);
  assert.deepEqual(rig.all, [4, 2, 1]);
  rig.nowMs += LINGER_MS / 2;
  assert.deepEqual(rig.all, [4, 1]);
  assert.deepEqual([rig.open("b"), rig.tables.get("c")], [5, undefined]);
});

test("only what nobody writes can be dropped before its time", () => {
  const rig = new Rig();
  for (const id of ["a", "b"]) rig.open(id);
  rig.tables.close("a", () => true);
  for (const id of ["a", "b"]) rig.tables.drop(id);
  assert.deepEqual(rig.all, [2]);
});
