// Proves the conversion of names between text and wire format.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import {
  FOLD,
  NAME_BYTES_MAX,
  folded,
  presentation,
  presentedLabels,
  sameBytes,
  wireLabels,
} from "../../../../src/base/dns/name.ts";

test("wireLabels() writes each label after its length and keeps letter case", () => {
  assert.deepEqual(Buffer.from(wireLabels("Web.one") ?? []), Buffer.from("\x03Web\x03one"));
});

test("wireLabels() accepts underscores, hyphens, digits and all else that presentation format does not escape", () => {
  for (const name of ["_a", "-", "0", "a_b-c.9", "#!$%&*+,/:<=>?[]^`{|}~"]) {
    assert.equal(presentation(wireLabels(name) ?? Buffer.alloc(0), 0, NAME_BYTES_MAX), name);
  }
});

test("wireLabels() rejects names that no query can carry", () => {
  const impossible = {
    "an empty name": "",
    "the root": ".",
    "an empty label": "a..b",
    "a dot at the end": "a.",
    "a dot at the start": ".a",
    "a label of 64 octets": "a".repeat(64),
    "a name of 256 octets": [63, 63, 63, 62].map((size) => "a".repeat(size)).join("."),
    "a blank": "a b",
    "a tab": "a\tb",
    "an at sign": "a@b",
    "a semicolon": "a;b",
    "an open parenthesis": "a(b",
    "a closed parenthesis": "a)b",
    "a quote": 'a"b',
    "a backslash": "a\\b",
    "a letter outside ASCII": "ä",
    "a character of two code units": "\u{1f40b}",
    "a zero": "a\0b",
    "a delete": "a\x7fb",
  };
  for (const [what, name] of Object.entries(impossible)) assert.equal(wireLabels(name), undefined, what);
});

test("wireLabels() accepts the longest label and the longest name", () => {
  assert.equal(wireLabels("a".repeat(63))?.length, 64);
  assert.equal(wireLabels([63, 63, 63, 61].map((size) => "a".repeat(size)).join("."))?.length, NAME_BYTES_MAX);
});

test("a name of 127 labels fits", () => {
  assert.equal(wireLabels(Array.from({ length: 127 }, () => "a").join("."))?.length, NAME_BYTES_MAX);
  assert.equal(wireLabels(Array.from({ length: 128 }, () => "a").join(".")), undefined);
});

test("FOLD changes only the 26 capital letters of ASCII", () => {
  const changed = [...FOLD.keys()].filter((octet) => FOLD[octet] !== octet);
  assert.equal(String.fromCharCode(...changed), "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  assert.equal(String.fromCharCode(...changed.map((octet) => FOLD[octet] ?? 0)), "abcdefghijklmnopqrstuvwxyz");
});

test("folded() keeps lengths, and makes a copy", () => {
  const labels = wireLabels("A".repeat(63)) ?? Buffer.alloc(0);
  assert.deepEqual(Buffer.from(folded(labels)), Buffer.from(`\x3f${"a".repeat(63)}`));
  assert.equal(labels[1], 0x41);
});

test("sameBytes() compares only the given number of bytes", () => {
  const a = Buffer.from("xxabc");
  const b = Buffer.from("abcyy");
  assert.equal(sameBytes(a, 2, b, 0, 3), true);
  assert.equal(sameBytes(a, 2, b, 0, 4), false);
  assert.equal(sameBytes(a, 0, b, 0, 1), false);
  assert.equal(sameBytes(a, 4, b, 2, 1), true);
  assert.equal(sameBytes(a, 0, b, 0, 0), true);
});

test("presentation() writes the root as a dot, and unprintable bytes in decimal", () => {
  assert.equal(presentation(Buffer.of(0), 0, 1), ".");
  assert.equal(presentation(Buffer.alloc(0), 0, 0), ".");
  assert.equal(presentation(Buffer.from("\x05a\x00\xff .", "latin1"), 0, 6), "a\\000\\255\\032\\.");
  assert.equal(presentation(Buffer.from('\x04@"\\;'), 0, 5), '\\@\\"\\\\\\;');
});

test("presentation() starts at the given offset and stops at a zero, at the end, and before a label that does not fit", () => {
  assert.equal(presentation(Buffer.from("zz\x01a\x00\x01b"), 2, 7), "a");
  assert.equal(presentation(Buffer.from("\x01a\x01b"), 0, 2), "a");
  assert.equal(presentation(Buffer.from("\x01a\x09b"), 0, 4), "a");
});

test("text and wire format convert to each other", () => {
  const label = fc.stringMatching(/^[!#-'*-\-/-:<-?A-[\]-~]{1,63}$/);
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 8 }), (labels) => {
      const name = labels.join(".");
      const wire = wireLabels(name);
      if (name.length + 1 > NAME_BYTES_MAX) assert.equal(wire, undefined);
      else assert.equal(presentation(wire ?? Buffer.alloc(0), 0, NAME_BYTES_MAX), name);
    }),
  );
});

test("labels have the presentation format back, whatever is in them", () => {
  for (const text of [".", "web", "web.one", "a\\032b.c", "a\\.b.c", "\\\\x.\\000", "\\255", "1\\0011"]) {
    const labels = presentedLabels(text) ?? assert.fail(text);
    assert.equal(presentation(labels, 0, labels.length), text);
  }
  assert.equal(presentedLabels("a".repeat(64)), undefined);
  assert.equal(presentedLabels(Array.from({ length: 128 }, () => "a").join(".")), undefined);
});
