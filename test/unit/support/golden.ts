/**
 * Golden: captures of what commands print, as files beside the tests. To write them again after a change, run the test with
 * GOLDEN=write and read the difference.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

const FOLDER = "test/unit/cmd/golden";

export function assertGolden(name: string, text: string): void {
  const path = `${FOLDER}/${name}.txt`;
  if (process.env["GOLDEN"] === "write") writeFileSync(path, text);
  assert.equal(text, readFileSync(path, "utf8"), path);
}
