// Proves that messages are read complete, in order and at once, however the stream was split into chunks.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { StreamReader, withLength } from "../../../../src/base/lib/stream-reader.ts";
import { bufferBytes } from "../../support/buffer-memory.ts";

test("a message is complete with its last byte", () => {
  const reader = new StreamReader();
  const stream = withLength(Buffer.from("query"));
  for (const byte of stream.subarray(0, -1)) {
    reader.push(Buffer.of(byte));
    assert.equal(reader.next(), undefined);
  }
  reader.push(stream.subarray(-1));
  assert.deepEqual(reader.next(), Buffer.from("query"));
  assert.equal(reader.next(), undefined);
});

test("hasWhole reports a complete message without taking it", () => {
  const reader = new StreamReader();
  const whole = [];
  for (const byte of withLength(Buffer.of(7))) {
    whole.push(reader.hasWhole);
    reader.push(Buffer.of(byte));
  }
  whole.push(reader.hasWhole, reader.hasWhole);
  reader.next();
  whole.push(reader.hasWhole);
  assert.deepEqual(whole, [false, false, false, true, true, false]);
});

test("several messages of one chunk are read in order", () => {
  const reader = new StreamReader();
  const messages = ["one", "", "three"].map((text) => Buffer.from(text));
  reader.push(Buffer.concat(messages.map((message) => withLength(message))));
  assert.deepEqual([reader.next(), reader.next(), reader.next(), reader.next()], [...messages, undefined]);
});

test("a message stays valid while the next ones are read", () => {
  const reader = new StreamReader();
  reader.push(Buffer.concat([withLength(Buffer.from("first")), withLength(Buffer.from("other"))]));
  const first = reader.next();
  reader.next();
  assert.deepEqual(first, Buffer.from("first"));
});

test("the longest message is read", () => {
  const reader = new StreamReader();
  const message = Buffer.alloc(65_535, 0xab);
  const stream = withLength(message);
  for (let at = 0; at < stream.length; at += 1000) reader.push(stream.subarray(at, at + 1000));
  assert.deepEqual(reader.next(), message);
});

test("an announced length costs no memory before the data arrives", () => {
  // Each connection may announce 64 KB; if that alone took memory, two bytes would cost 64 KB.
  const before = bufferBytes();
  const readers = Array.from({ length: 1000 }, () => new StreamReader());
  for (const reader of readers) reader.push(Buffer.of(0xff, 0xff, 0));
  const grown = bufferBytes() - before;
  assert.ok(grown < 4_000_000, `${grown} bytes for 1000 readers of three bytes each`);
  assert.ok(readers.every((reader) => reader.next() === undefined));
});

test("an endless stream of small messages needs the memory of a few", () => {
  const reader = new StreamReader();
  const message = withLength(Buffer.alloc(200, 1));
  // A message and a half at a time, so that one is always incomplete and the start keeps moving.
  const stream = Buffer.concat(Array.from({ length: 300 }, () => message));
  const before = bufferBytes();
  let taken = 0;
  for (let round = 0; round < 200; round++) {
    for (let at = 0; at < stream.length; at += 303) {
      reader.push(stream.subarray(at, at + 303));
      while (reader.next() !== undefined) taken++;
    }
  }
  assert.equal(taken, 200 * 300);
  assert.ok(bufferBytes() - before < 1_000_000);
});

test("any messages, split in any way, are read back unchanged", () => {
  const message = fc.oneof(
    { weight: 8, arbitrary: fc.uint8Array({ maxLength: 60 }) },
    { weight: 1, arbitrary: fc.uint8Array({ minLength: 500, maxLength: 3000 }) },
  );
  const chunk = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 1500 }));
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 30 }),
      fc.array(chunk, { minLength: 1 }),
      fc.boolean(),
      (messages, cuts, isLate) => {
        const stream = Buffer.concat(messages.map((bytes) => withLength(bytes)));
        const reader = new StreamReader();
        const taken: Buffer[] = [];
        const take = (): void => {
          for (let next = reader.next(); next !== undefined; next = reader.next()) taken.push(Buffer.from(next));
        };
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const size = cuts[turn % cuts.length] ?? 1;
          reader.push(stream.subarray(at, at + size));
          at += size;
          // A busy reader reads messages later, while more arrive.
          if (!isLate || turn % 3 === 0) take();
        }
        take();
        assert.deepEqual(
          taken,
          messages.map((bytes) => Buffer.from(bytes)),
        );
        assert.equal(reader.next(), undefined);
      },
    ),
  );
});
