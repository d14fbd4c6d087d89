// Proves that a new file is there when it is complete, with its mode, and that nothing at its path is overwritten or followed.

import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { NewFile } from "../../../cmd/process/new-file.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-new-file-"));
after(() => rmSync(folder, { recursive: true }));

test("it is there when it is complete, for its owner only, whatever the umask", () => {
  const path = join(folder, "new");
  const before = process.umask(0);
  try {
    const file = new NewFile(path, 0o600);
    assert.deepEqual(readdirSync(folder), [], "whoever is interrupted leaves nothing");
    file.write("text");
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(readFileSync(path, "utf8"), "text");
    assert.deepEqual(readdirSync(folder), ["new"]);
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
    assert.throws(() => new NewFile(path, 0o600), { code: "FILE_EXISTS" });
  }
  const late = join(folder, "late");
  const file = new NewFile(late, 0o600);
  writeFileSync(late, "another's");
  assert.throws(() => file.write("ours"), { code: "FILE_EXISTS" });
  assert.equal(readFileSync(late, "utf8"), "another's");
  assert.equal(readFileSync(kept, "utf8"), "kept");
  assert.equal(existsSync(join(folder, "nothing")), false);
});

test("a path where nothing can be created is known at once, and a folder that is gone at the end", () => {
  assert.throws(() => new NewFile(join(folder, "missing", "file"), 0o600), { code: "NEW_FILE" });
  assert.throws(() => new NewFile(join(folder, "kept", "file"), 0o600), { code: "NEW_FILE" });
  const place = join(folder, "gone");
  mkdirSync(place);
  const file = new NewFile(join(place, "file"), 0o600);
  rmSync(place, { recursive: true });
  assert.throws(() => file.write("text"), { code: "NEW_FILE" });
});
