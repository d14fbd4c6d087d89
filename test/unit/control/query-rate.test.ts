// Proves that a stream of queries for a page has at most so many queries a second, and counts the others.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { MissedReport, QueryReport, SkippedReport } from "../../../src/api/queries.ts";
import { limitedRate } from "../../../src/control/routes/query-routes.ts";
import { aReport } from "../support/query-reports.ts";

type Batch = readonly (QueryReport | MissedReport)[];

function many(count: number, from = 0): QueryReport[] {
  return Array.from({ length: count }, (_, at) => aReport({ name: `n${from + at}` }));
}

async function drawn(
  batches: readonly (readonly [atMs: number, batch: Batch])[],
  perSecond: number,
): Promise<string[]> {
  let nowMs = 0;
  async function* source(): AsyncGenerator<Batch> {
    for (const [atMs, batch] of batches) {
      nowMs = atMs;
      yield await Promise.resolve(batch);
    }
  }
  const lines: string[] = [];
  const text = (each: QueryReport | SkippedReport): string =>
    "skipped" in each ? `+${each.skipped}` : (each.name ?? "");
  for await (const batch of limitedRate(source(), perSecond, () => nowMs)) lines.push(batch.map(text).join(" "));
  return lines;
}

test("queries beyond the limit are counted once a second, with those that were overwritten", async () => {
  const batches: [number, Batch][] = [
    [0, many(3)],
    [100, many(2, 3)],
    [200, [{ container: "web", missed: 7 }, ...many(2, 5)]],
    [1_000, many(1, 7)],
    [2_500, []],
  ];
  // The first batch is the past, which was requested by number.
  assert.deepEqual(await drawn(batches, 2), ["n0 n1 n2", "n3 n4", "", "+9 n7", ""]);
});

test("a limit of none shows only how many there were", async () => {
  assert.deepEqual(
    await drawn(
      [
        [0, []],
        [10, many(4)],
        [1_200, many(1)],
        [2_300, []],
      ],
      0,
    ),
    ["", "", "+4", "+1"],
  );
});
