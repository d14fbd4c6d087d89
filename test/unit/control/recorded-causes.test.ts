// Proves how many causes are kept, and that no container takes the room of another.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import type { FailureRecord } from "../../../src/base/model/failure-record.ts";
import { RecordedCauses } from "../../../src/control/recorded-causes.ts";
import { FailureTable } from "../../../src/query/failures/failure-table.ts";

const CAUSE = { code: "unknown-name", sentence: "", fix: null, lastingFix: null, isBreaking: false } as const;

function named(name: string): FailureRecord {
  return {
    ...{ name, type: 1, rcode: 3, count: 1, steps: 0, isStepLast: false, perMinute: 1, isNear: true },
    ...{ firstMs: 0, lastMs: 0, successMs: undefined },
  };
}

test("a container that fails at ever new names keeps its share, and those of others", () => {
  const recorded = new RecordedCauses({} as never, () => 0);
  const [victim, flood] = [new FailureTable("victim"), new FailureTable("flood")];
  recorded.note(victim, named("db"), CAUSE);
  for (let index = 0; index < 2 * LIMITS.recordedCauses; index++) recorded.note(flood, named(`n${index}`), CAUSE);
  assert.equal(recorded.count, LIMITS.causesPerContainer + 1);
  assert.deepEqual(recorded.of(victim, named("db"))?.cause, CAUSE);
  assert.equal(recorded.of(flood, named("n0")), undefined);
});

test("of too many, those of the container that has not failed for longest go first", () => {
  const recorded = new RecordedCauses({} as never, () => 0);
  const tables = Array.from({ length: LIMITS.recordedCauses + 1 }, (_, index) => new FailureTable(`c${index}`));
  for (const table of tables) recorded.note(table, named("db"), CAUSE);
  assert.equal(recorded.count, LIMITS.recordedCauses);
  assert.equal(recorded.of(tables[0] as FailureTable, named("db")), undefined);
  assert.deepEqual(recorded.of(tables[1] as FailureTable, named("db"))?.cause, CAUSE);
});

test("the same failure again is one cause", () => {
  const recorded = new RecordedCauses({} as never, () => 0);
  const table = new FailureTable("c1");
  recorded.note(table, named("db"), null);
  recorded.note(table, named("db"), CAUSE);
  assert.equal(recorded.count, 1);
  assert.deepEqual(recorded.of(table, named("db"))?.cause, CAUSE);
});
