// Proves that what is to be undone in a node is kept whole, found again, and never believed where it is damaged.

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

import { Journal, type NodeRecord } from "../../../../src/container/kind/journal.ts";
import { codeOf } from "../../../../src/base/lib/fault.ts";

const ID = "a".repeat(64);
const OTHER_ID = "b".repeat(64);
const RECORD: NodeRecord = {
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

function without(key: keyof NodeRecord): object {
  return Object.fromEntries(Object.entries(RECORD).filter(([name]) => name !== key));
}

test("what is written is read again, also by another process's journal", (t) => {
  const folder = folderOf(t);
  new Journal(folder).write(RECORD);
  assert.deepEqual(new Journal(folder).read(ID), { record: RECORD });
  assert.deepEqual(new Journal(folder).all(), { records: [RECORD], damaged: [] });
});

test("a record without a resolv.conf is one, too", (t) => {
  const journal = new Journal(folderOf(t));
  const record = without("resolvConf") as NodeRecord;
  journal.write(record);
  assert.deepEqual(journal.read(ID), { record });
});

test("the last record counts, and nothing else stays in the folder", (t) => {
  const folder = folderOf(t);
  const journal = new Journal(folder);
  journal.write({ ...RECORD, published: ["10.0.0.1"] });
  writeFileSync(join(folder, "nodes", `${ID}.json.partial`), "left by somebody who was killed");
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

test("nobody else may read it", (t) => {
  const folder = folderOf(t);
  mkdirSync(join(folder, "nodes"), { mode: 0o755 });
  chmodSync(join(folder, "nodes"), 0o755);
  new Journal(folder).write(RECORD);
  assert.equal(statSync(join(folder, "nodes")).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder, "nodes", `${ID}.json`)).mode & 0o777, 0o600);
});

test("where nothing was ever written there is nothing", (t) => {
  const journal = new Journal(join(folderOf(t), "never"));
  assert.deepEqual(journal.all(), { records: [], damaged: [] });
  assert.deepEqual(journal.read(ID), {});
  journal.remove(ID);
});

for (const [what, text, why] of [
  ["empty", "", /JSON/],
  ["cut off", JSON.stringify(RECORD).slice(0, 100), /JSON/],
  ["no record", "[1]", /holds no record/],
  ["nothing", "null", /holds no record/],
  ["of another version", JSON.stringify({ ...RECORD, version: 2 }), /another version/],
  ["another container's", JSON.stringify({ ...RECORD, containerId: OTHER_ID }), /another container's/],
  ["without a list", JSON.stringify(without("addresses")), /"addresses"/],
  ["with an address that is none", JSON.stringify({ ...RECORD, published: ["gateway"] }), /"published"/],
  [
    "with a prefix that is none",
    JSON.stringify({ ...RECORD, addresses: [{ address: "10.0.0.1", prefixLength: 129 }] }),
    /"addresses"/,
  ],
  [
    "with a device that leads elsewhere",
    JSON.stringify({ ...RECORD, routeLocalnet: { "../all": "0" } }),
    /"routeLocalnet"/,
  ],
  ["with a device that is a folder", JSON.stringify({ ...RECORD, routeLocalnet: { "..": "0" } }), /"routeLocalnet"/],
  ["with a value that is none", JSON.stringify({ ...RECORD, routeLocalnet: { lo: "yes" } }), /"routeLocalnet"/],
  [
    "with bytes that are none",
    JSON.stringify({ ...RECORD, resolvConf: { ...RECORD.resolvConf, original: "name server" } }),
    /"resolvConf"/,
  ],
  ["without a wish", JSON.stringify(without("wish")), /"wish"/],
  ["with a PID that is none", JSON.stringify({ ...RECORD, pid: -1 }), /"pid"/],
] as const) {
  test(`a damaged file is left out, with its reason: ${what}`, (t) => {
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

test("files that are no records are nobody's business", (t) => {
  const folder = folderOf(t);
  const journal = new Journal(folder);
  journal.write(RECORD);
  for (const name of ["README", "x.json", ".json", `${OTHER_ID}.json.partial`]) {
    writeFileSync(join(folder, "nodes", name), "?");
  }
  assert.deepEqual(journal.all(), { records: [RECORD], damaged: [] });
});

test("an id that is none never becomes a path", (t) => {
  const journal = new Journal(folderOf(t));
  for (const id of ["", "../../etc/passwd", "A".repeat(64), "a/b", ".", "a".repeat(65)]) {
    assert.throws(() => journal.read(id), /no container's id/);
    assert.throws(() => journal.remove(id), /no container's id/);
    assert.throws(() => journal.write({ ...RECORD, containerId: id }), /no container's id/);
  }
});

test("a folder that cannot be written is told, and the record before stays", (t) => {
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
