// Proves what a typed name is on the wire: which query finds it, its table key, and how it is packed for an answer.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { nameKey, packedName, spelledLabels } from "../../../../../src/container/names/docker/docker-name.ts";
import { NAME_BYTES_MAX, folded, presentation, wireLabels } from "../../../../../src/base/dns/name.ts";

// What was typed, and the one wire name with this text, or none.
const SPELLED: Readonly<Record<string, string | undefined>> = {
  web: "\x03web",
  "Web.One": "\x03Web\x03One",
  _a: "\x02_a",
  "": "",
  // A backslash before special characters, and three digits for anything but printable ASCII.
  "a\\.b": "\x03a.b",
  "a\\ b": "\x03a b",
  "a\\@b": "\x03a@b",
  "a\\'b": "\x03a'b",
  "a\\\\b": "\x03a\\b",
  "a\\000b": "\x03a\x00b",
  "a\\255": "\x02a\xff",
  // Not how Docker spells it.
  "a b": undefined,
  "a@b": undefined,
  "a'b": undefined,
  "a;b": undefined,
  'a"b': undefined,
  "a\\b": undefined,
  "a\\065": undefined,
  "a\\256": undefined,
  "a\\999": undefined,
  "a\\": undefined,
  ä: undefined,
  "a\tb": undefined,
  // Not a name at all.
  ".": undefined,
  "a.": undefined,
  ".a": undefined,
  "a..b": undefined,
  ["a".repeat(64)]: undefined,
  [Array.from({ length: 128 }, () => "a").join(".")]: undefined,
};

for (const [text, wire] of Object.entries(SPELLED)) {
  const what = text.length > 20 ? `a text of ${text.length} characters` : JSON.stringify(text);
  test(`${what} is spelled by ${wire === undefined ? "no query" : JSON.stringify(wire)}`, () => {
    const labels = spelledLabels(text);
    assert.deepEqual(labels && Buffer.from(labels).toString("latin1"), wire);
  });
}

test("the longest label and the longest name are spelled", () => {
  assert.equal(spelledLabels("a".repeat(63))?.length, 64);
  assert.equal(spelledLabels(Array.from({ length: 127 }, () => "a").join("."))?.length, NAME_BYTES_MAX);
});

test("the presentation of every query name spells that name", () => {
  const label = fc.uint8Array({ minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 6 }), (labels) => {
      const wire = Buffer.concat(labels.map((octets) => Buffer.from([octets.length, ...octets])));
      // Our presentation has no backslash before an apostrophe; Docker's has.
      const text = presentation(wire, 0, wire.length).replaceAll("'", "\\'").replaceAll("\\032", "\\ ");
      assert.deepEqual(Buffer.from(spelledLabels(text) ?? []), wire);
    }),
  );
});

test("a name's key is in lower case, like a folded query name", () => {
  assert.deepEqual(nameKey("Web.ONE"), wireLabels("web.one"));
  assert.deepEqual(nameKey("WEB"), nameKey("web"));
  assert.deepEqual(nameKey("A\\.B"), Buffer.from("\x03a.b"));
});

test("letters outside ASCII are lower-cased as Go does", () => {
  // The kelvin sign and the capital I with a dot have lower-case letters in ASCII.
  assert.deepEqual(nameKey("\u212a8s"), wireLabels("k8s"));
  assert.deepEqual(nameKey("\u0130"), wireLabels("i"));
});

test("a name that no query can spell has its own key, which links can find", () => {
  const keys = ["a b", "a@b", "ä", "a.", "a".repeat(64)].map((name) => nameKey(name));
  for (const key of keys) assert.ok((key[0] ?? 0) > 63);
  assert.equal(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size, keys.length);
  assert.deepEqual(nameKey("A B"), nameKey("a b"));
});

test("nameKey() of a plain name equals the folded query name, in any letter case", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,20}(\.[A-Za-z0-9_-]{1,20}){0,3}$/), (name) => {
      assert.deepEqual(Buffer.from(nameKey(name)), Buffer.from(folded(wireLabels(name) ?? assert.fail())));
    }),
  );
});

const PACKED: Readonly<Record<string, string | undefined>> = {
  "Web.one": "\x03Web\x03one\x00",
  "web.one.": "\x03web\x03one\x00",
  "a b.one": "\x03a b\x03one\x00",
  "a\\.b": "\x03a.b\x00",
  "a\\.": "\x02a.\x00",
  "a\\065b": "\x03aAb\x00",
  ä: "\x02\xc3\xa4\x00",
  "a..b": undefined,
  ".a": undefined,
  [`${"x".repeat(64)}.one`]: undefined,
  [`${"x".repeat(63)}.one`]: `\x3f${"x".repeat(63)}\x03one\x00`,
};

for (const [text, wire] of Object.entries(PACKED)) {
  const what = text.length > 20 ? `a text of ${text.length} characters` : JSON.stringify(text);
  test(`${what} is ${wire === undefined ? "not " : ""}packed for an answer`, () => {
    assert.deepEqual(
      packedName(text)?.length === undefined ? undefined : Buffer.from(packedName(text) ?? []).toString("latin1"),
      wire,
    );
  });
}

test("a packed name may be longer than a question's", () => {
  const name = Array.from({ length: 5 }, () => "x".repeat(63)).join(".");
  assert.equal(packedName(name)?.length, 5 * 64 + 1);
});
