// What was recorded can be replayed, however much it is: each rule of a replay is one that a lease accepts, in a line.

import assert from "node:assert/strict";
import { test } from "node:test";

import { replayRules, tapeOf } from "../../../src/api/lab/tape.ts";
import type { RecordedQuery } from "../../../src/api/lease.ts";
import { LAB_LIMITS } from "../../../src/features/lab/limits.ts";
import { readRule } from "../../../src/features/lab/rule-reader.ts";

function aQuery(records: RecordedQuery["records"], name = "db.test"): RecordedQuery {
  return {
    container: "web",
    project: null,
    service: null,
    name,
    type: "A",
    rcode: "NOERROR",
    cnames: [],
    records,
    ttl: 60,
    isLocal: false,
    isRuled: false,
    ms: 0,
  };
}

function sequenceOf(queries: readonly RecordedQuery[]): { readonly answers: readonly { times?: number }[] } {
  const rules = replayRules(tapeOf(queries), {}, "nxdomain");
  for (const rule of rules) {
    readRule(rule);
    assert.ok(JSON.stringify({ rule }).length < LAB_LIMITS.lineBytes);
  }
  const found = rules.find(({ action }) => action === "sequence") ?? assert.fail();
  return { answers: (found.answers ?? []) as { times?: number }[] };
}

test("a name that was answered alike ten thousand times is replayed, for as long as a sequence may be", () => {
  const [first, second] = [{ a: ["10.0.0.1"] }, { a: ["10.0.0.2"] }];
  const queries = [...Array<object>(900).fill(first), ...Array<object>(9_100).fill(second)];
  const { answers } = sequenceOf(queries.map((each) => aQuery(each as RecordedQuery["records"])));
  assert.deepEqual(
    answers.map(({ times }) => times),
    [900, 100],
  );
});

test("answers that alternate, and long ones, are cut to what a rule and a line hold", () => {
  const alternating = Array.from({ length: 3_000 }, (_, index) => aQuery({ a: [`10.0.0.${index % 2}`] }));
  assert.equal(sequenceOf(alternating).answers.length, 1_000);
  const long = Array.from({ length: 500 }, (_, index) => aQuery({ txt: [`${index} ${"x".repeat(240)}`] }));
  const { length } = sequenceOf(long).answers;
  assert.ok(length > 100 && length < 500, `${length} answers`);
});
