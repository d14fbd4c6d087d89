// Proves which records of changes a run drops when it starts: none of a container of which nothing is known.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Journal, newRecord } from "../../../../src/container/files/journal.ts";
import { restoreLeft } from "../../../../src/run/engine/left-changes.ts";

const ID = "c".repeat(64);
const STARTED_AT = "2026-01-01T00:00:00Z";
const FACT = { id: ID, name: "web", startedAt: STARTED_AT, sandboxKey: "", pid: 1 };

for (const [what, facts, unknown, isKept] of [
  ["that has ended", [], [], false],
  ["that could not be inspected", [], [ID], true],
  ["that has started again", [{ ...FACT, startedAt: "2026-01-02T00:00:00Z" }], [], false],
  ["in which a feature changes files again", [FACT], [], true],
] as const) {
  test(`the record of a container ${what} is ${isKept ? "kept" : "dropped"}`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "d11-left-"));
    try {
      const journal = new Journal(folder);
      journal.write(newRecord(FACT, "search"));
      const side = {
        directory: { containers: new Map(facts.map((fact) => [fact.id, fact])) },
        features: [{ changesFiles: () => true }],
        follower: { unknown: new Set<string>(unknown) },
      };
      assert.deepEqual(await restoreLeft(side as never, {} as never, { journal } as never), []);
      assert.equal(journal.read(ID).record !== undefined, isKept);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
