// Proves LabelTable against a plain map, also with colliding keys.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { HASH_BASIS, LabelTable, hashByte, hashOf } from "../../../../src/base/model/label-table.ts";
import { wireLabels } from "../../../../src/base/dns/name.ts";

// Different keys with the same hash.
const COLLIDING = collisions(3);

test("hashOf() is FNV-1a with a basis of this process", () => {
  assert.equal(hashOf(Buffer.alloc(0)), HASH_BASIS);
  assert.equal(hashOf(Buffer.from("a")), Math.imul(HASH_BASIS ^ 0x61, 16_777_619));
});

test("hashByte() continues a hash", () => {
  const whole = Buffer.from("\x03web\x03one");
  let hash = HASH_BASIS;
  for (const byte of whole) hash = hashByte(hash, byte);
  assert.equal(hash, hashOf(whole));
});

test("find() uses only the given number of bytes of the key", () => {
  const table = new LabelTable<string>();
  table.set(labels("web"), "found");
  const longer = labels("web.one");
  assert.equal(table.find(longer, 4, hashOf(labels("web"))), "found");
  assert.equal(table.find(longer, longer.length, hashOf(longer)), undefined);
});

test("find() compares bytes, not only hashes", () => {
  const table = new LabelTable<number>();
  const [first, second] = COLLIDING;
  assert.ok(first !== undefined && second !== undefined);
  assert.notDeepEqual(first, second);
  table.set(first, 1);
  assert.equal(table.get(second), undefined);
});

test("colliding keys coexist, and each can be deleted", () => {
  for (const leaving of COLLIDING.keys()) {
    const table = new LabelTable<number>();
    for (const [index, key] of COLLIDING.entries()) table.set(key, index);
    assert.equal(table.size, COLLIDING.length);
    table.delete(COLLIDING[leaving] as Uint8Array);
    assert.deepEqual(
      COLLIDING.map((key) => table.get(key)),
      [...COLLIDING.keys()].map((index) => (index === leaving ? undefined : index)),
    );
    assert.equal(table.size, COLLIDING.length - 1);
  }
});

test("set() replaces, and deleting a missing key changes nothing", () => {
  const table = new LabelTable<string>();
  table.set(labels("web"), "old");
  table.set(labels("web"), "new");
  table.delete(labels("other"));
  assert.equal(table.get(labels("web")), "new");
  assert.equal(table.size, 1);
});

test("the table behaves like a map for any sequence of changes", () => {
  // Few keys, some colliding, so that chains grow, shrink from every end, and grow again.
  const key = fc.constantFrom(...COLLIDING, ...["a", "b", "a.b", "web", "web.one"].map((name) => labels(name)));
  const step = fc.oneof(
    fc.record({ act: fc.constant("set" as const), key, value: fc.integer() }),
    fc.record({ act: fc.constant("delete" as const), key, value: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const table = new LabelTable<number>();
      const map = new Map<string, number>();
      for (const { act, key: bytes, value } of steps) {
        const text = Buffer.from(bytes).toString("hex");
        if (act === "set") {
          table.set(bytes, value);
          map.set(text, value);
        } else {
          table.delete(bytes);
          map.delete(text);
        }
        assert.equal(table.size, map.size);
        assert.equal(table.get(bytes), map.get(text));
      }
      for (const [text, value] of map) assert.equal(table.get(Buffer.from(text, "hex")), value);
    }),
  );
});

function labels(name: string): Uint8Array {
  return wireLabels(name) ?? assert.fail(`"${name}" is no name`);
}

// The table uses 30 bits of the hash, and the low bits of FNV-1a depend on low bits only. So keys of five bytes that collide
// with "web" are found by going three bytes forward from the start and two bytes back from the end until both meet.
function collisions(count: number): Uint8Array[] {
  const SMALL = 0x3fffffff;
  const PRIME = 0x01000193;
  let inverse = 1;
  for (let round = 0; round < 5; round++) inverse = Math.imul(inverse, 2 - Math.imul(PRIME, inverse));
  const forward = new Map<number, Uint8Array>();
  for (let number = 0; number < 0x40000; number++) {
    const bytes = Buffer.of(number >> 16, (number >> 8) & 0xff, number & 0xff);
    forward.set(hashOf(bytes) & SMALL, bytes);
  }
  const found: Uint8Array[] = [];
  for (let pair = 0; pair < 0x10000; pair++) {
    let state = hashOf(Buffer.from("\x03web"));
    for (const byte of [pair & 0xff, pair >> 8]) state = Math.imul(state, inverse) ^ byte;
    const start = forward.get(state & SMALL);
    if (start !== undefined) found.push(Buffer.concat([start, Buffer.of(pair >> 8, pair & 0xff)]));
  }
  assert.ok(found.length >= count, `${found.length} keys of one place are not enough`);
  return found.slice(0, count);
}
