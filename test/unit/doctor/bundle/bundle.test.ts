// Proves that a bundle is an archive that tar reads, for its owner only, and that nothing at its path is overwritten or
// followed.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { BundleFile } from "../../../../src/doctor/bundle/bundle.ts";
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

test("a new file is for its owner only, whatever the umask; discarded, it is gone", () => {
  const path = join(folder, "new.tar.gz");
  const before = process.umask(0);
  try {
    const file = new BundleFile(path);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    file.discard();
    assert.equal(existsSync(path), false);
  } finally {
    process.umask(before);
  }
});

test("nothing is overwritten, and no link is followed, not even one to nothing", () => {
  const kept = join(folder, "kept");
  writeFileSync(kept, "kept");
  const [toFile, toNothing] = [join(folder, "to-file"), join(folder, "to-nothing")];
  symlinkSync(kept, toFile);
  symlinkSync(join(folder, "nothing"), toNothing);
  for (const path of [kept, toFile, toNothing, folder]) {
    assert.throws(() => new BundleFile(path), { code: "BUNDLE_EXISTS" });
  }
  assert.throws(() => new BundleFile(join(folder, "missing", "file")), { code: "BUNDLE" });
  assert.equal(readFileSync(kept, "utf8"), "kept");
  assert.equal(existsSync(join(folder, "nothing")), false);
});
