// Proves what the doctor says about declared names: nothing without any, that all files are valid, and each mistake.

import assert from "node:assert/strict";
import { test } from "node:test";

import { findings } from "../../../src/features/records/report.ts";

test("nothing without declared names, and a finding where every file is valid", () => {
  assert.deepEqual(findings({ status: undefined }), []);
  assert.deepEqual(findings({ status: { records: { names: 0, problems: [] } } }), []);
  const [only, ...more] = findings({ status: { records: { names: 1, problems: [] } } });
  assert.deepEqual([only?.state, only?.detail, more.length], ["ok", "1 declared name, and every file is valid", 0]);
});

test("each mistake is a warning with its place and what to do; of very many the first ones", () => {
  const problems = Array.from({ length: 30 }, (_, line) => `/records/one.hosts:${line + 1}:1: invalid address "10.9"`);
  const found = findings({ status: { records: { names: 7, problems } } });
  assert.equal(found.length, 8);
  assert.ok(found.every(({ state, remedy }) => state === "warning" && /Correct the file/.test(remedy ?? "")));
  assert.match(found[0]?.detail ?? "", /one\.hosts:1:1: invalid address.*; names that the file had before stay$/);
  assert.match(found.at(-1)?.detail ?? "", /; and 22 more$/);
  const few = findings({ status: { records: { names: 7, problems: problems.slice(0, 8) } } });
  assert.doesNotMatch(few.at(-1)?.detail ?? "", /more/);
});
