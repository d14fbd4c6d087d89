// Proves the probe query and its outcome.

import assert from "node:assert/strict";
import { test } from "node:test";

import { probeName, probeOutcome, probeQuery } from "../../../../src/base/model/probe-message.ts";
import { TYPE, aQuery, aReplyTo } from "../../../support/scripted/builders.ts";

test("a probe is a TXT query below .invalid, which is never forwarded", () => {
  assert.equal(probeName("00ff"), "00ff.dns11.invalid");
  assert.deepEqual(probeQuery("00ff", 0x1234), aQuery({ flags: 0, name: "00ff.dns11.invalid", type: TYPE.TXT }));
});

test("probeOutcome() returns the response code as a word", () => {
  const query = probeQuery("00ff", 7);
  assert.equal(probeOutcome(aReplyTo(query, 0), 7), "NOERROR");
  assert.equal(probeOutcome(aReplyTo(query, 3), 7), "NXDOMAIN");
  assert.equal(probeOutcome(aReplyTo(query, 2), 7), "SERVFAIL");
});

test("probeOutcome() returns undefined for another id, for a query, and for a malformed message", () => {
  const query = probeQuery("00ff", 7);
  assert.equal(probeOutcome(aReplyTo(query), 8), undefined);
  assert.equal(probeOutcome(query, 7), undefined);
  assert.equal(probeOutcome(Buffer.alloc(0), 7), undefined);
  assert.equal(probeOutcome(aReplyTo(query).subarray(0, 20), 7), undefined);
});
