// Proves LabelTable against a plain map, also with colliding keys.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { HASH_BASIS, LabelTable, hashByte, hashOf } from "../../../../src/base/model/label-table.ts";
import { wireLabels } from "../../../../src/base/dns/name.ts";

const PRIME = 0x01000193;
const INVERSE = inverseOf(PRIME);
// Different keys with the same hash.
const COLLIDING = collisions(ownHash(), 3);

test("names that collide from one basis of FNV-1a, which do so from one in 256, do not collide", () => {
  const crafted = collisions(fnvHash(HASH_BASIS & 0xff), 4);
  const hashes = crafted.map(hashOf);
  assert.ok(new Set(hashes).size > 1, "they collide in this process, too");
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

/** A hash that goes on by one byte, and the way back. */
interface Hash {
  readonly basis: number;
  readonly step: (hash: number, byte: number) => number;
  readonly back: (hash: number, byte: number) => number;
}

// Keys of six bytes that have the hash of the first one: three bytes forward from the basis and three back from the end meet.
function collisions({ basis, step, back }: Hash, count: number): Uint8Array[] {
  const forward = new Map<number, Uint8Array>();
  for (let number = 0; number < 0x40000; number++) {
    const key = Buffer.of(number >> 16, (number >> 8) & 0xff, number & 0xff);
    forward.set(key.reduce(step, basis), key);
  }
  const first = Buffer.from("\x05aaaaa");
  const end = first.reduce(step, basis);
  const found: Uint8Array[] = [first];
  for (let number = 0; found.length < count; number++) {
    assert.ok(number < 0x1000000, `${found.length} keys of one hash are not enough`);
    const ending = Buffer.of(number >> 16, (number >> 8) & 0xff, number & 0xff);
    const start = forward.get(ending.reduceRight(back, end));
    if (start !== undefined) found.push(Buffer.concat([start, ending]));
  }
  return found;
}

// Of one who knows the words of this process.
function ownHash(): Hash {
  const undo = (hash: number): number => Math.imul(hash ^ (hash >>> 15) ^ (hash >>> 30), INVERSE);
  return { basis: HASH_BASIS, step: hashByte, back: (hash, byte) => undo(hash) ^ undo(hashByte(0, byte)) };
}

function fnvHash(basis: number): Hash {
  return {
    basis,
    step: (hash, byte) => Math.imul(hash ^ byte, PRIME),
    back: (hash, byte) => Math.imul(hash, INVERSE) ^ byte,
  };
}

function inverseOf(odd: number): number {
  let inverse = 1;
  for (let round = 0; round < 5; round++) inverse = Math.imul(inverse, 2 - Math.imul(odd, inverse));
  return inverse;
}
