// Proves that the records folder is followed: files that come, change, turn bad and go, next to the names of the settings.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import type { DeclaredName } from "../../../src/base/model/declared-name.ts";
import type { RecordsSettings } from "../../../src/features/records/feature.ts";
import { RecordsReader } from "../../../src/features/records/reader.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { declaredIn } from "../../support/scripted/declarations.ts";

class Rig implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "d11-records-"));
  readonly events: string[] = [];
  names: readonly DeclaredName[] = [];
  readonly records = new RecordsReader(
    (about, text) => this.events.push(`${text} ${JSON.stringify(about)}`),
    (names) => (this.names = names),
  );

  async configure(settings: RecordsSettings): Promise<void> {
    this.names = (await this.records.prepare(settings))();
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  get texts(): string[] {
    return this.names.map(({ name, records }) => `${name} ${records.map(({ text }) => text).join(",")}`).toSorted();
  }

  async expect(...texts: readonly string[]): Promise<void> {
    await waitFor(texts.join("; "), () => this.texts.join("; ") === texts.join("; ") || undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.records.close();
    await Promise.resolve();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

test("files come, change, turn bad and go; a bad file keeps the names that it had", async () => {
  await using rig = new Rig();
  rig.write("a.yaml", "records: {a.test: 10.0.0.1}");
  rig.write("b.hosts", "10.0.0.2 b.test");
  rig.write(".hidden.yaml", "records: {h.test: 10.0.0.1}");
  rig.write("a.yaml~", "records: {h.test: 10.0.0.1}");
  const settings = { records: declaredIn("records: {s.test: 10.0.0.9}"), folder: rig.folder };
  await rig.configure(settings);
  const reverse = "2.0.0.10.in-addr.arpa PTR b.test";
  await rig.expect(reverse, "a.test A 10.0.0.1", "b.test A 10.0.0.2", "s.test A 10.0.0.9");
  rig.write("a.yaml", "records: {a.test: 10.0.0.3}");
  await rig.expect(reverse, "a.test A 10.0.0.3", "b.test A 10.0.0.2", "s.test A 10.0.0.9");
  rig.write("a.yaml", "records:\n  a.test: 10.0.0.4\n  x.test: 10.0.0\n");
  rig.write("c.yaml", "records: {c.test: 10.0.0.5}");
  await rig.expect(reverse, "a.test A 10.0.0.3", "b.test A 10.0.0.2", "c.test A 10.0.0.5", "s.test A 10.0.0.9");
  const { problems } = rig.records.report;
  assert.equal(problems.length, 1);
  assert.match(problems[0] ?? "", /a\.yaml:3:11: records\.x\.test: invalid address "10\.0\.0": use/);
  assert.equal(rig.events.filter((each) => each.startsWith("records have mistakes")).length, 1);
  rmSync(join(rig.folder, "b.hosts"));
  rig.write("new", "");
  renameSync(join(rig.folder, "new"), join(rig.folder, "a.yaml"));
  await rig.expect("c.test A 10.0.0.5", "s.test A 10.0.0.9");
  assert.deepEqual(rig.records.report, { names: 2, problems: [] });
  assert.ok(rig.events.at(-1)?.startsWith("records are valid again"), rig.events.at(-1));
});

test("a file that contradicts the settings or an earlier file is refused as a whole", async () => {
  await using rig = new Rig();
  rig.write("a.yaml", "records: {one.test: 10.0.0.1}");
  rig.write("b.yaml", "records: {two.test: 10.0.0.2, one.test: 10.0.0.2}");
  rig.write("c.yaml", "records: {s.test: 10.0.0.1}");
  await rig.configure({ records: declaredIn("records: {s.test: 10.0.0.9}"), folder: rig.folder });
  await rig.expect("one.test A 10.0.0.1", "s.test A 10.0.0.9");
  const { problems } = rig.records.report;
  assert.match(problems[0] ?? "", /b\.yaml:1:\d+: one\.test: is declared twice for everybody, also at .*a\.yaml:1:11/);
  assert.match(problems[1] ?? "", /c\.yaml:1:11: s\.test: is declared twice for everybody, also at s\.yaml:2:11/);
});

test("a folder that is missing, and files that cannot be trusted, are reported and harm no other file", async () => {
  await using rig = new Rig();
  const late = join(rig.folder, "late");
  await rig.configure({ records: declaredIn("records: {s.test: 10.0.0.9}"), folder: late });
  await rig.expect("s.test A 10.0.0.9");
  assert.match(rig.records.report.problems[0] ?? "", /late: cannot be read: .*ENOENT/);
  rig.write("ok.yml", "records: {ok.test: 10.0.0.1}");
  rig.write("writable.yaml", "records: {w.test: 10.0.0.1}");
  chmodSync(join(rig.folder, "writable.yaml"), 0o666);
  rig.write("notes.txt", "records");
  mkdirSync(join(rig.folder, "folder.yaml"));
  execFileSync("mkfifo", ["-m", "644", join(rig.folder, "pipe.hosts")]);
  rig.write("binary.hosts", "10.0.0.1 \u0000\ufffd");
  rig.write("big.yaml", " ".repeat(9 * 1024 * 1024));
  rig.write("deep.yaml", "[".repeat(10_000));
  rig.write(
    "bomb.yaml",
    `a: &a [1,1]\n${["b", "c", "d", "e", "f"].map((each) => `${each}: &${each} [${"*a,".repeat(30)}]`).join("\n")}`,
  );
  await rig.configure({ records: [], folder: rig.folder });
  await rig.expect("ok.test A 10.0.0.1");
  const problems = rig.records.report.problems.map((each) => each.replace(`${rig.folder}/`, "")).join("\n");
  for (const what of [
    /^writable\.yaml: cannot be read: every user may write it: chmod o-w/m,
    /^notes\.txt: unknown format: use a name that ends in/m,
    /^folder\.yaml: cannot be read/m,
    /^pipe\.hosts: cannot be read: it is not a regular file/m,
    /^binary\.hosts:1:1: invalid name/m,
    /^big\.yaml: cannot be read: it is larger than 8 MB/m,
    /^deep\.yaml:1:\d+: nested too deeply/m,
    /^bomb\.yaml:1:1: too many aliases/m,
  ]) {
    assert.match(problems, what);
  }
});
