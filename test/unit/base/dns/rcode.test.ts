// Proves that response codes are parsed as they are written, and that other texts are rejected.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RCODE_NAMES, rcodeName, rcodeNumber } from "../../../../src/base/dns/rcode.ts";

test("each response code is parsed by name, in any letter case, and as a number", () => {
  for (let rcode = 0; rcode < 24; rcode++) {
    assert.equal(rcodeNumber(rcodeName(rcode)), rcode);
    assert.equal(rcodeNumber(rcodeName(rcode).toLowerCase()), rcode);
    assert.equal(rcodeNumber(String(rcode)), rcode);
  }
  assert.deepEqual(RCODE_NAMES.map(rcodeNumber).slice(0, 4), [0, 1, 2, 3]);
});

test("other texts are rejected", () => {
  for (const text of ["", "NO", "A", "-1", "100", "1.5", "NOERROR "]) assert.equal(rcodeNumber(text), undefined, text);
});
