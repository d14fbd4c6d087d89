// Proves that stored bytes are read back unchanged, whatever their length and whatever was stored and freed before.

import assert from "node:assert/strict";
import { randomBytes, randomInt } from "node:crypto";
import { test } from "node:test";

import { Cells, cellsFor } from "../../../../src/query/cache/cells.ts";

test("bytes of any length are read back, from any offset", () => {
  const cells = new Cells(40);
  for (const length of [0, 1, 63, 64, 65, 128, 1000]) {
    const bytes = randomBytes(length);
    const first = cells.store(bytes, length);
    for (const skip of [0, 1, 64, 65, 999].filter((at) => at <= length)) {
      const found = Buffer.alloc(length - skip);
      cells.copy(first, skip, found.length, found);
      assert.deepEqual(found, bytes.subarray(skip), `${length} bytes from ${skip} on`);
    }
    assert.ok(cells.startsWith(first, bytes, length));
    if (length > 0) {
      const other = Buffer.from(bytes);
      other.writeUInt8(bytes.readUInt8(length - 1) ^ 1, length - 1);
      assert.ok(!cells.startsWith(first, other, length), `${length} bytes, the last one another`);
      assert.ok(cells.startsWith(first, other, length - 1));
    }
    cells.free(first);
  }
});

test("the cells can be filled completely, repeatedly, and no further", () => {
  const cells = new Cells(3);
  for (let round = 0; round < 5; round++) {
    const kept = [cells.store(randomBytes(65), 65), cells.store(randomBytes(1), 1)];
    assert.throws(() => cells.store(randomBytes(1), 1), /no free cell is left/);
    if (round === 2) cells.clear();
    else for (const first of kept) cells.free(first);
  }
});

test("bytes stored and freed in any order never mix", () => {
  const cells = new Cells(100);
  const kept = new Map<number, Buffer>();
  let used = 0;
  for (let step = 0; step < 5_000; step++) {
    const bytes = randomBytes(randomInt(1, 400));
    if (used + cellsFor(bytes.length) <= 100) {
      kept.set(cells.store(bytes, bytes.length), bytes);
      used += cellsFor(bytes.length);
      continue;
    }
    const [first = 0, old = Buffer.alloc(0)] = [...kept][randomInt(kept.size)] ?? [];
    const found = Buffer.alloc(old.length);
    cells.copy(first, 0, found.length, found);
    assert.deepEqual(found, old);
    cells.free(first);
    kept.delete(first);
    used -= cellsFor(old.length);
  }
});
