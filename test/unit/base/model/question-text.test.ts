// Proves how questions are parsed, and that invalid ones are rejected with a reason.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decode } from "dns-packet";

import { parseQuestion, questionQuery } from "../../../../src/base/model/name-query.ts";
import { parseType, typeName } from "../../../../src/base/dns/record-type.ts";

test("types are parsed by name in any letter case and by number, and written by name where there is one", () => {
  for (const [text, number] of [
    ["A", 1],
    ["aaaa", 28],
    ["https", 65],
    ["CAA", 257],
    ["TYPE0", 0],
    ["TYPE1", 1],
    ["type65535", 65535],
  ] as const) {
    assert.equal(parseType(text), number, text);
  }
  assert.deepEqual([typeName(1), typeName(65), typeName(4711)], ["A", "HTTPS", "TYPE4711"]);
  for (const text of ["", "AAA", "TYPE65536", "TYPE", "constructor", "1"]) {
    assert.throws(() => parseType(text), /unknown record type/, text);
  }
  assert.throws(() => parseType("AAA"), /did you mean AAAA\?/);
});

test("every type of the dns-packet package is known, with the same number", () => {
  for (const name of [
    "NULL",
    "AFSDB",
    "APL",
    "CDS",
    "DHCID",
    "DLV",
    "HIP",
    "NAPTR",
    "NSEC3PARAM",
    "TA",
    "TSIG",
    "ANY",
  ]) {
    const [question] = decode(questionQuery({ labels: new Uint8Array(0), type: parseType(name) }, 1)).questions ?? [];
    assert.equal(question?.type, name);
  }
});

test("a name is taken as it is written, without a trailing dot", () => {
  for (const [text, name, isAbsolute] of [
    ["web", "web", false],
    ["Web.N1.", "Web.N1", true],
    [".", ".", true],
    ["_sip._tcp.x", "_sip._tcp.x", false],
  ] as const) {
    const question = parseQuestion(text, "SRV");
    assert.deepEqual([question.name, question.isAbsolute, question.typeName], [name, isAbsolute, "SRV"], text);
  }
});

test("an address stands for its reverse name, unless there is a type", () => {
  assert.deepEqual(
    ["192.0.2.1", "2001:db8::1"].map((text) => [
      parseQuestion(text, undefined).name,
      parseQuestion(text, undefined).typeName,
    ]),
    [
      ["1.2.0.192.in-addr.arpa", "PTR"],
      [`1.${"0.".repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa`, "PTR"],
    ],
  );
  assert.equal(parseQuestion("192.0.2.1", "A").name, "192.0.2.1");
});

test("invalid names are rejected", () => {
  for (const text of ["we b", "a..b", ".a", "x".repeat(64), `${"abcdefg.".repeat(32)}x`, "bücher", ".."]) {
    assert.throws(() => parseQuestion(text, "A"), /invalid domain name/, text);
  }
  assert.throws(() => parseQuestion("", undefined), /a domain name is required/);
});

test("the query has EDNS and recursion desired", () => {
  const query = decode(questionQuery(parseQuestion("web.n1", "AAAA"), 4711));
  assert.deepEqual(
    [query.id, query.flags, query.questions],
    [4711, 0x100, [{ name: "web.n1", type: "AAAA", class: "IN" }]],
  );
  assert.deepEqual([query.additionals?.length, query.additionals?.[0]?.type], [1, "OPT"]);
});
