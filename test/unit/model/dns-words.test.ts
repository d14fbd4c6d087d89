// Proves that words and numbers of types and response codes say the same.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RCODE_WORDS, rcodeNumber, rcodeWord, typeWord } from "../../../src/model/dns-words.ts";

test("a type has its word, and one that nobody knows its number", () => {
  assert.deepEqual([1, 28, 65, 257, 999, 65_280].map(typeWord), ["A", "AAAA", "HTTPS", "CAA", "TYPE999", "TYPE65280"]);
});

test("each response code is read as it is written, in any letter case, and as a number", () => {
  for (let rcode = 0; rcode < 24; rcode++) {
    assert.equal(rcodeNumber(rcodeWord(rcode)), rcode);
    assert.equal(rcodeNumber(rcodeWord(rcode).toLowerCase()), rcode);
    assert.equal(rcodeNumber(String(rcode)), rcode);
  }
  assert.deepEqual(RCODE_WORDS.map(rcodeNumber), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16]);
});

test("what is no response code is none", () => {
  for (const text of ["", "NO", "A", "-1", "100", "1.5", "NOERROR "]) assert.equal(rcodeNumber(text), undefined, text);
});
