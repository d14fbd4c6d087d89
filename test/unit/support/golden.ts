/**
 * Golden: captures of what commands print, as files beside the tests. After a change, UPDATE_GOLDEN=1 writes them anew, to be
 * read before they are committed.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

const FOLDER = "test/unit/cmd/golden";

export function assertGolden(name: string, shown: string): void {
  const path = `${FOLDER}/${name}.txt`;
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(path, shown);
  assert.equal(shown, readFileSync(path, "utf8"), path);
}
