// Proves how many causes are kept, and that no container takes the room of another.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Cause } from "../../../src/api/causes.ts";
import { LIMITS } from "../../../src/base/limits.ts";
import type { FailureRecord } from "../../../src/base/model/query-record.ts";
import { RecordedCauses } from "../../../src/control/failures/recorded-causes.ts";
import { FailureTable } from "../../../src/query/failures/failure-table.ts";

const CAUSE = { code: "unknown-name", sentence: "", fix: null, lastingFix: null, isBreaking: false } as const;

function named(name: string): FailureRecord {
  return {
    ...{ name, type: 1, rcode: 3, count: 1, steps: 0, isStepLast: false, perMinute: 1, isLocal: true },
    ...{ firstMs: 0, lastMs: 0, successMs: undefined },
  };
}

function remembering(): RecordedCauses {
  return new RecordedCauses(
    () => [],
    async () => await Promise.resolve(() => CAUSE),
    () => 0,
  );
}

test("a container that fails at ever new names keeps its share, and those of others", () => {
  const recorded = remembering();
  const [victim, flood] = [new FailureTable("victim"), new FailureTable("flood")];
  recorded.note(victim, named("db"), CAUSE);
  for (let index = 0; index < 2 * LIMITS.recordedCauses; index++) recorded.note(flood, named(`n${index}`), CAUSE);
  assert.equal(recorded.count, LIMITS.causesPerContainer + 1);
  assert.deepEqual(recorded.of(victim, named("db"))?.cause, CAUSE);
  assert.equal(recorded.of(flood, named("n0")), undefined);
});

test("of too many, those of the container that has not failed for longest go first", () => {
  const recorded = remembering();
  const tables = Array.from({ length: LIMITS.recordedCauses + 1 }, (_, index) => new FailureTable(`c${index}`));
  for (const table of tables) recorded.note(table, named("db"), CAUSE);
  assert.equal(recorded.count, LIMITS.recordedCauses);
  assert.equal(recorded.of(tables[0] as FailureTable, named("db")), undefined);
  assert.deepEqual(recorded.of(tables[1] as FailureTable, named("db"))?.cause, CAUSE);
});

test("the same failure again is one cause", () => {
  const recorded = remembering();
  const table = new FailureTable("c1");
  recorded.note(table, named("db"), null);
  recorded.note(table, named("db"), CAUSE);
  assert.equal(recorded.count, 1);
  assert.deepEqual(recorded.of(table, named("db"))?.cause, CAUSE);
});

interface Table {
  readonly containerId: string;
  lastMs: number;
  names: string[];
}

/** Names have failed in each container; to find out a cause takes so long. */
function looking(
  tables: readonly Table[],
  { takesMs = 0, cause = () => CAUSE }: { takesMs?: number; cause?: () => Cause } = {},
): { recorded: RecordedCauses; found: string[]; clock: { ms: number } } {
  const clock = { ms: 0 };
  const found: string[] = [];
  const asTables = (): Iterable<FailureTable> =>
    tables.map((table) => ({
      ...table,
      records: () => table.names.map((name) => ({ ...named(name), lastMs: table.lastMs })),
    })) as unknown as FailureTable[];
  const find = ({ containerId }: FailureTable, { name }: FailureRecord): Cause => {
    clock.ms += takesMs;
    found.push(`${containerId} ${name}`);
    return cause();
  };
  // Tables are known by identity.
  const all = [...asTables()];
  for (const [index, each] of all.entries())
    Object.defineProperty(each, "lastMs", { get: () => tables[index]?.lastMs ?? 0 });
  const open = async (): Promise<typeof find> => await Promise.resolve(find);
  return {
    recorded: new RecordedCauses(
      () => all,
      open,
      () => clock.ms,
    ),
    found,
    clock,
  };
}

test("a failure is looked at when it happens, once more when nothing fails any more, and not again", async () => {
  const table: Table = { containerId: "c1", lastMs: 1, names: ["db"] };
  const guess: Cause = { ...CAUSE, code: "upstream-error" };
  const { recorded, found, clock } = looking([table], { cause: () => guess });
  clock.ms = 2;
  await recorded.look();
  clock.ms = 502;
  await recorded.look();
  clock.ms = 1_002;
  await recorded.look();
  assert.deepEqual(found, ["c1 db", "c1 db"]);
  table.lastMs = 1_003;
  clock.ms = 1_502;
  await recorded.look();
  assert.equal(found.length, 2, "it has been looked at a moment ago");
  clock.ms = 2_002;
  await recorded.look();
  assert.equal(found.length, 3);
});

test("a cause that a reader has noted while the facts were collected stays: by then the servers may be back", async () => {
  const down: Cause = { ...CAUSE, code: "upstreams-down" };
  const guess: Cause = { ...CAUSE, code: "upstream-error" };
  const record = { ...named("db"), lastMs: 1 };
  const table = { containerId: "c1", lastMs: 1, records: () => [record] } as unknown as FailureTable;
  const recorded: RecordedCauses = new RecordedCauses(
    () => [table],
    async () => {
      await Promise.resolve();
      recorded.note(table, record, down);
      return () => guess;
    },
    () => 2,
  );
  await recorded.look();
  assert.deepEqual(recorded.of(table, record)?.cause, down);
});

test("containers whose causes take long take turns", async () => {
  const names = Array.from({ length: 40 }, (_, index) => `n${index}`);
  const tables = ["a", "b", "c"].map((containerId): Table => ({ containerId, lastMs: 1, names }));
  const { recorded, found } = looking(tables, { takesMs: LIMITS.causesMs });
  for (const id of ["a", "b", "c"]) {
    found.length = 0;
    await recorded.look();
    assert.equal(found.length, LIMITS.causesAtOnce);
    assert.ok(
      found.every((each) => each.startsWith(`${id} `)),
      found.join(),
    );
  }
});
