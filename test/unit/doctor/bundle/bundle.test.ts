// Proves that a bundle is an archive that tar reads.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { tarOf } from "../../../../src/doctor/bundle/tar.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-bundle-"));
after(() => rmSync(folder, { recursive: true }));

test("tar reads the archive, for texts of any length", () => {
  const files = [0, 1, 511, 512, 513, 5_000].map((length) => ({ path: `x/${length}.txt`, text: "é".repeat(length) }));
  const path = join(folder, "a.tar");
  writeFileSync(path, tarOf(files, new Date("2026-01-01T00:00:00Z")));
  const list = spawnSync("tar", ["-tvf", path, "--utc"], { encoding: "utf8" });
  assert.deepEqual([list.status, list.stderr], [0, ""]);
  assert.match(list.stdout, /^-rw------- 0\/0 +0 2026-01-01 00:00 x\/0\.txt$/m);
  for (const { path: name, text } of files) {
    assert.equal(spawnSync("tar", ["-xOf", path, name], { encoding: "utf8" }).stdout, text);
  }
});
