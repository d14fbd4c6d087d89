// Proves what is reported about errors.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Fault, codeOf, reasonOf } from "../../../../src/base/lib/fault.ts";

test("reasonOf() appends the causes of a message, one after the other", () => {
  const root = new Error("no such file");
  const middle = new Fault("BAD_THING", "cannot read it", { cause: root });
  assert.equal(reasonOf(new Error("cannot start", { cause: middle })), "cannot start: cannot read it: no such file");
  assert.equal(reasonOf("a word"), "a word");
  assert.equal(reasonOf(undefined), "undefined");
});

test("codeOf() finds the code of a Fault and of a Node error, and nothing else", () => {
  assert.equal(codeOf(new Fault("BAD_THING", "")), "BAD_THING");
  assert.equal(codeOf(Object.assign(new Error(""), { code: "ENOENT" })), "ENOENT");
  assert.equal(codeOf(Object.assign(new Error(""), { code: 5 })), undefined);
  assert.equal(codeOf(new Error("")), undefined);
  assert.equal(codeOf({ code: "ENOENT" }), undefined);
});

test("a Fault is retryable by default, and has a cause only if given one", () => {
  const fault = new Fault("BAD_THING", "no", { remedy: "Do it." });
  assert.deepEqual([fault.isFinal, fault.remedy, "cause" in fault], [false, "Do it.", false]);
  assert.equal(new Fault("BAD_THING", "no", { isFinal: true }).isFinal, true);
});
