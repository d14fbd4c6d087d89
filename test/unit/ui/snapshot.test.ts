// Proves that a snapshot shows nothing private when redacted and is still one, that no name in it becomes markup, and that a folder
// with anything else is never changed.

import assert from "node:assert/strict";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runInNewContext } from "node:vm";

import type { Snapshot } from "../../../src/api/snapshot.ts";
import { redactSnapshot } from "../../../src/ui/snapshot/redact-snapshot.ts";
import { SnapshotFolder } from "../../../src/ui/snapshot/snapshot-folder.ts";
import { aReport } from "../support/query-reports.ts";

const FILES = new Map([
  [
    "index.html",
    { type: "text/html", bytes: Buffer.from("<head><!-- snapshot --><script src=app.js defer></script></head>") },
  ],
  ["app.js", { type: "text/javascript", bytes: Buffer.from("1") }],
]);
const folder = mkdtempSync(join(tmpdir(), "d11-snapshot-"));
after(() => rmSync(folder, { recursive: true }));

const NETWORK = { network: "shop_back", hasNames: true, names: ["db", "acme-db-1"], ipv4: "172.20.0.2", ipv6: null };

function aSnapshot(parts: Partial<Snapshot> = {}): Snapshot {
  const nothing = {
    status: null,
    networks: null,
    matrix: null,
    failures: null,
    upstreams: null,
    history: null,
    cache: null,
  };
  const container = {
    id: "c".repeat(64),
    name: "acme-db-1",
    project: "acme",
    service: "db",
    state: "running",
    dns: "attached" as const,
  };
  const rest = { exitCode: null, since: "2026-01-01T12:00:00Z", health: null, code: null, reason: 'no name "db"' };
  return {
    format: 1,
    takenAt: "2026-01-01T12:00:00Z",
    isRedacted: false,
    ...nothing,
    containers: {
      containers: [{ ...container, ...rest, networks: [NETWORK], upstreams: ["host(198.51.100.7)"] }],
      omitted: 0,
    },
    events: { events: [], missed: 0, last: 0 },
    queries: {
      queries: [aReport({ container: "acme-db-1", name: "private.acme.example", rcode: "NXDOMAIN" })],
      missed: 0,
      last: null,
    },
    errors: [],
    ...parts,
  };
}

test("a redacted snapshot has no name and no public address, and the same one is the same word everywhere", () => {
  const redacted = redactSnapshot(aSnapshot());
  const text = JSON.stringify(redacted);
  for (const secret of ["acme", "private", "198.51.100.7", "shop_back"])
    assert.ok(!text.includes(secret), `${secret} in ${text}`);
  const [container = assert.fail()] = redacted.containers?.containers ?? [];
  assert.equal(redacted.isRedacted, true);
  assert.equal(redacted.queries?.queries[0]?.container, container.name);
  assert.ok(container.networks[0]?.names.includes(container.name));
  assert.deepEqual(
    [container.state, container.dns, container.networks[0]?.ipv4],
    ["running", "attached", "172.20.0.2"],
  );
  assert.equal(redacted.queries?.queries[0]?.rcode, "NXDOMAIN");
});

test("containers that are named like states change none", () => {
  const { containers } = aSnapshot();
  const [first = assert.fail()] = containers?.containers ?? [];
  const odd = { ...first, name: "running", service: "attached", project: "up" };
  const redacted = redactSnapshot(aSnapshot({ containers: { containers: [odd], omitted: 0 } }));
  const [shown] = redacted.containers?.containers ?? [];
  assert.deepEqual([shown?.state, shown?.dns], ["running", "attached"]);
  assert.notEqual(shown?.name, "running");
});

test("a new folder gets the page and its data, for its owner only, and no name is markup", () => {
  const path = join(folder, "new");
  const name = "</script><b>\u2028\u202e\u0007\u007F";
  new SnapshotFolder(path, FILES).write(aSnapshot({ errors: [name] }));
  assert.deepEqual(readdirSync(path).toSorted(), ["app.js", "data.js", "index.html"]);
  assert.equal(lstatSync(path).mode & 0o777, 0o700);
  assert.equal(lstatSync(join(path, "data.js")).mode & 0o777, 0o600);
  const html = readFileSync(join(path, "index.html"), "utf8");
  assert.match(
    html,
    /<meta http-equiv="Content-Security-Policy" content="default-src 'none';[^"]*connect-src 'none'[^"]*">/,
  );
  assert.match(html, /<script src="data\.js" defer><\/script><script src=app\.js/);
  const script = readFileSync(join(path, "data.js"), "utf8");
  assert.match(script, /^[\x20-\x7E\n]+$/);
  assert.ok(!script.includes("<"));
  const scope: { dns11Snapshot?: Snapshot } = {};
  runInNewContext(`globalThis = this; ${script}`, scope);
  assert.deepEqual(scope.dns11Snapshot?.errors[0], name);
});

test("an earlier snapshot is replaced, through no link", () => {
  const path = join(folder, "again");
  const victim = join(folder, "victim");
  writeFileSync(victim, "mine");
  new SnapshotFolder(path, FILES).write(aSnapshot());
  rmSync(join(path, "app.js"));
  symlinkSync(victim, join(path, "app.js"));
  new SnapshotFolder(path, FILES).write(aSnapshot({ errors: ["second"] }));
  assert.equal(readFileSync(victim, "utf8"), "mine");
  assert.match(readFileSync(join(path, "data.js"), "utf8"), /second/);
});

test("a folder with anything else, a file and a link are left alone", () => {
  const fails = (path: string): void => {
    assert.throws(() => new SnapshotFolder(path, FILES), { code: "SNAPSHOT_EXISTS" });
  };
  const other = join(folder, "other");
  mkdirSync(other);
  writeFileSync(join(other, "data.js"), "globalThis.dns11Snapshot = {};");
  writeFileSync(join(other, "notes.txt"), "x");
  fails(other);
  assert.ok(!existsSync(join(other, "index.html")));
  const lookalike = join(folder, "lookalike");
  mkdirSync(lookalike);
  writeFileSync(join(lookalike, "index.html"), "mine");
  fails(lookalike);
  writeFileSync(join(folder, "file"), "x");
  fails(join(folder, "file"));
  mkdirSync(join(folder, "target"));
  symlinkSync(join(folder, "target"), join(folder, "link"));
  fails(join(folder, "link"));
  assert.throws(() => new SnapshotFolder(join(folder, "no", "where"), FILES), { code: "SNAPSHOT" });
});

test("an empty folder is used", () => {
  const path = join(folder, "empty");
  mkdirSync(path);
  assert.equal(new SnapshotFolder(path, FILES).write(aSnapshot()).files, 3);
});
