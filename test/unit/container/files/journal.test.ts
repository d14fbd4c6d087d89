// Tests that undo records are written atomically, found again, and ignored if they are damaged.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

import { Journal, type ChangeRecord } from "../../../../src/container/files/journal.ts";
import { codeOf } from "../../../../src/base/lib/fault.ts";

const ID = "a".repeat(64);
const OTHER_ID = "b".repeat(64);
const RECORD: ChangeRecord = {
  version: 1,
  containerId: ID,
  name: "kind-control-plane",
  startedAt: "2026-08-21T10:00:00.123456789Z",
  sandboxKey: "/var/run/docker/netns/0123456789ab",
  pid: 4711,
  wish: "auto",
  resolvConf: {
    path: `/var/lib/docker/containers/${ID}/resolv.conf`,
    original: Buffer.from("nameserver 127.0.0.11\n# \xff\n", "latin1").toString("base64"),
    written: Buffer.from("nameserver 172.18.0.1\n# \xff\n", "latin1").toString("base64"),
  },
  addresses: [{ address: "169.254.53.53", prefixLength: 32 }],
  routeLocalnet: { veth0: "0", "br-0.100": "1" },
  published: ["172.18.0.1", "fd00::1"],
};

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "d11-journal-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

function without(key: keyof ChangeRecord): object {
  return Object.fromEntries(Object.entries(RECORD).filter(([name]) => name !== key));
}

test("a written record is read again, also by another process's journal", (t) => {
  const folder = folderOf(t);
  new Journal(folder).write(RECORD);
  assert.deepEqual(new Journal(folder).read(ID), { record: RECORD });
  assert.deepEqual(new Journal(folder).all(), { records: [RECORD], damaged: [] });
});

test("a record without a resolv.conf is valid", (t) => {
  const journal = new Journal(folderOf(t));
  const record = without("resolvConf") as ChangeRecord;
  journal.write(record);
  assert.deepEqual(journal.read(ID), { record });
});

test("the last record replaces earlier ones, and no other file stays in the folder", (t) => {
  const folder = folderOf(t);
  const journal = new Journal(folder);
  journal.write({ ...RECORD, published: ["10.0.0.1"] });
  writeFileSync(join(folder, "nodes", `${ID}.json.partial`), "left by a killed process");
  journal.write(RECORD);
  journal.write({ ...RECORD, containerId: OTHER_ID });
  assert.deepEqual(
    journal.all().records.map(({ containerId, published }) => [containerId, published]),
    [
      [ID, RECORD.published],
      [OTHER_ID, RECORD.published],
    ],
  );
  assert.deepEqual(readdirSync(join(folder, "nodes")).toSorted(), [`${ID}.json`, `${OTHER_ID}.json`]);
  journal.remove(ID);
  journal.remove(ID);
  assert.deepEqual(journal.read(ID), {});
  assert.deepEqual(journal.all().records.length, 1);
});

test("other users cannot read it", (t) => {
  const folder = folderOf(t);
  mkdirSync(join(folder, "nodes"), { mode: 0o755 });
  chmodSync(join(folder, "nodes"), 0o755);
  new Journal(folder).write(RECORD);
  assert.equal(statSync(join(folder, "nodes")).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder, "nodes", `${ID}.json`)).mode & 0o777, 0o600);
});

test("a journal that was never written is empty", (t) => {
  const journal = new Journal(join(folderOf(t), "never"));
  assert.deepEqual(journal.all(), { records: [], damaged: [] });
  assert.deepEqual(journal.read(ID), {});
  journal.remove(ID);
});

for (const [what, text, why] of [
  ["empty", "", /JSON/],
  ["cut off", JSON.stringify(RECORD).slice(0, 100), /JSON/],
  ["not a record", "[1]", /Not a record/],
  ["null", "null", /Not a record/],
  ["of another version", JSON.stringify({ ...RECORD, version: 2 }), /Unsupported version/],
  ["another container's", JSON.stringify({ ...RECORD, containerId: OTHER_ID }), /belongs to another container/],
  ["without a list", JSON.stringify(without("addresses")), /"addresses"/],
  ["with an invalid address", JSON.stringify({ ...RECORD, published: ["gateway"] }), /"published"/],
  [
    "with an invalid prefix length",
    JSON.stringify({ ...RECORD, addresses: [{ address: "10.0.0.1", prefixLength: 129 }] }),
    /"addresses"/,
  ],
  [
    "with an interface name that is a path",
    JSON.stringify({ ...RECORD, routeLocalnet: { "../all": "0" } }),
    /"routeLocalnet"/,
  ],
  [
    "with an interface name that is a folder",
    JSON.stringify({ ...RECORD, routeLocalnet: { "..": "0" } }),
    /"routeLocalnet"/,
  ],
  ["with an invalid value", JSON.stringify({ ...RECORD, routeLocalnet: { lo: "yes" } }), /"routeLocalnet"/],
  [
    "with invalid Base64",
    JSON.stringify({ ...RECORD, resolvConf: { ...RECORD.resolvConf, original: "name server" } }),
    /"resolvConf"/,
  ],
  ["without a wish", JSON.stringify(without("wish")), /"wish"/],
  ["with an invalid PID", JSON.stringify({ ...RECORD, pid: -1 }), /"pid"/],
] as const) {
  test(`a damaged file is ignored with a reason: ${what}`, (t) => {
    const folder = folderOf(t);
    const journal = new Journal(folder);
    journal.write({ ...RECORD, containerId: OTHER_ID });
    writeFileSync(join(folder, "nodes", `${ID}.json`), text);
    const { record, damaged = "" } = journal.read(ID);
    assert.equal(record, undefined);
    assert.match(damaged, why);
    const all = journal.all();
    assert.deepEqual(
      all.records.map(({ containerId }) => containerId),
      [OTHER_ID],
    );
    assert.deepEqual(all.damaged, [damaged]);
    journal.write(RECORD);
    assert.deepEqual(journal.read(ID), { record: RECORD });
  });
}

test("other files in the folder are ignored", (t) => {
  const folder = folderOf(t);
  const journal = new Journal(folder);
  journal.write(RECORD);
  for (const name of ["README", "x.json", ".json", `${OTHER_ID}.json.partial`]) {
    writeFileSync(join(folder, "nodes", name), "?");
  }
  assert.deepEqual(journal.all(), { records: [RECORD], damaged: [] });
});

test("an invalid container id never becomes a path", (t) => {
  const journal = new Journal(folderOf(t));
  for (const id of ["", "../../etc/passwd", "A".repeat(64), "a/b", ".", "a".repeat(65)]) {
    assert.throws(() => journal.read(id), /Invalid container ID/);
    assert.throws(() => journal.remove(id), /Invalid container ID/);
    assert.throws(() => journal.write({ ...RECORD, containerId: id }), /Invalid container ID/);
  }
});

test("a folder that cannot be written is an error, and the earlier record stays", (t) => {
  const folder = folderOf(t);
  const journal = new Journal(folder);
  journal.write(RECORD);
  mkdirSync(join(folder, "nodes", `${ID}.json.partial`));
  assert.throws(
    () => journal.write({ ...RECORD, published: [] }),
    (error: unknown) => codeOf(error) === "JOURNAL",
  );
  assert.deepEqual(JSON.parse(readFileSync(join(folder, "nodes", `${ID}.json`), "utf8")), RECORD);
});
