// SearchMode with a real file and a real journal: what it writes, what it leaves, and that it restores to the byte, whoever else
// writes the file and wherever it was killed.

import assert from "node:assert/strict";
import { mkdirSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";

import { CONTAINER_BY_PROCESS, CONTAINER_MODE } from "../../../src/container/attach/attach-mode.ts";
import { Journal } from "../../../src/container/files/journal.ts";
import { intermediateTexts } from "../../../src/container/files/resolv-conf-file.ts";
import { type ProjectSearch, SearchMode } from "../../../src/features/search/search.ts";
import { FileLease } from "../../support/program/file-lease.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { aContainer } from "../../support/scripted/builders.ts";

const DOCKERS = "# \xff\nnameserver 127.0.0.11\nsearch lan\noptions ndots:0\n";
const WRITTEN = "# \xff\nnameserver 127.0.0.11\nsearch shop.svc.test svc.test test lan\noptions ndots:5\n";
const SHOP: ProjectSearch = { list: { domains: ["shop.svc.test", "svc.test", "test"], ndots: 5 } };

const folder = makeFolder("search-mode");
const path = join(folder, "resolv.conf");
const state = join(folder, "state");
let changes = 0;
after(() => rmSync(folder, { recursive: true }));
beforeEach(() => {
  changes = 0;
  rmSync(state, { recursive: true, force: true });
  mkdirSync(state);
  write(DOCKERS);
});

function write(text: string): void {
  writeFileSync(path, text, "latin1");
}

function read(): string {
  return readFileSync(path, "latin1");
}

function records(): readonly string[] {
  try {
    return readdirSync(join(state, "nodes"));
  } catch {
    return [];
  }
}

/** As another process would find it after a kill of the former, which has written nothing since. */
function aMode(search: ProjectSearch = SHOP, startedAt = "1"): SearchMode {
  return new SearchMode(aContainer({ startedAt, resolvConfPath: path }), search, {
    base: CONTAINER_MODE,
    journal: new Journal(state),
    openFile: (flags) => openSync(path, flags),
    onChange: () => (changes += 1),
  });
}

test("it writes when queries are answered, not before, once, and restores to the byte", async () => {
  const mode = aMode();
  assert.equal(read(), DOCKERS);
  await mode.onVerified();
  assert.equal(read(), WRITTEN);
  await mode.onVerified();
  assert.deepEqual([read(), mode.problem, changes, records().length], [WRITTEN, undefined, 0, 1]);
  mode.withdraw();
  assert.deepEqual([read(), records()], [DOCKERS, []]);
  await mode.onVerified();
  assert.equal(read(), WRITTEN);
});

test("what another program has changed before stays, and is said once", async () => {
  const mode = aMode();
  write(`${DOCKERS}search mine\n`);
  await mode.onVerified();
  await mode.onVerified();
  assert.deepEqual([read(), changes, records()], [`${DOCKERS}search mine\n`, 1, []]);
  assert.match(mode.problem ?? "", /another program has changed its resolv\.conf/);
  mode.withdraw();
  assert.equal(read(), `${DOCKERS}search mine\n`);
});

test("so does what is changed later, also at the end; Docker's own text is taken up again", async () => {
  const mode = aMode();
  await mode.onVerified();
  write("nameserver 127.0.0.11\nsearch mine\n");
  await mode.onVerified();
  assert.match(mode.problem ?? "", /another program has changed/);
  mode.withdraw();
  assert.deepEqual([read(), records()], ["nameserver 127.0.0.11\nsearch mine\n", []]);
  const other = aMode();
  write(DOCKERS);
  await other.onVerified();
  write(DOCKERS);
  await other.onVerified();
  assert.deepEqual([read(), other.problem], [WRITTEN, undefined]);
});

test("after a kill the next process adopts the file, at whatever point it was killed", async () => {
  await aMode().onVerified();
  for (const text of [
    WRITTEN,
    DOCKERS,
    ...intermediateTexts(DOCKERS, WRITTEN),
    ...intermediateTexts(WRITTEN, DOCKERS),
  ]) {
    write(text);
    const next = aMode();
    await next.onVerified();
    assert.deepEqual([read(), next.problem], [WRITTEN, undefined]);
  }
  aMode().withdraw();
  assert.deepEqual([read(), records()], [DOCKERS, []]);
});

test("a record of an earlier start of the container is of no use", async () => {
  await aMode().onVerified();
  const fresh = DOCKERS.replace("lan", "wan");
  write(fresh);
  const next = aMode(SHOP, "2");
  await next.onVerified();
  assert.equal(read(), WRITTEN.replace("lan", "wan"));
  next.withdraw();
  assert.equal(read(), fresh);
});

test("another zone replaces the list while the container is served, and none restores the file", async () => {
  const mode = aMode();
  mode.update({ list: { domains: ["other"], ndots: 5 } });
  assert.equal(read(), DOCKERS, "not served yet");
  await mode.onVerified();
  assert.match(read(), /^search other lan$/m);
  mode.update(SHOP);
  assert.equal(read(), WRITTEN);
  mode.update({ problem: "there is no zone" });
  assert.deepEqual([read(), mode.problem, records()], [DOCKERS, "there is no zone", []]);
  mode.update(SHOP);
  assert.equal(read(), WRITTEN);
});

test("without a record there is no change, and a file that is none is left alone", async () => {
  rmSync(state, { recursive: true });
  writeFileSync(state, "a file where the folder of the journal would be");
  const mode = aMode();
  await mode.onVerified();
  assert.deepEqual([read(), /undo record/.test(mode.problem ?? "")], [DOCKERS, true]);
  rmSync(state);
  mkdirSync(state);
  write(`${DOCKERS}${"#".repeat(70_000)}`);
  await mode.onVerified();
  assert.match(mode.problem ?? "", /cannot be read/);
  rmSync(path);
  await mode.onVerified();
  mode.withdraw();
  assert.match(mode.problem ?? "", /cannot be read/);
});

test("a container that holds a write lease on the file holds nobody up, and gets its list when it has released it", async () => {
  const mode = aMode();
  {
    await using _ = await FileLease.on(path);
    await mode.onVerified();
    assert.match(mode.problem ?? "", /cannot be read/);
  }
  await mode.onVerified();
  assert.deepEqual([read(), mode.problem, changes], [WRITTEN, undefined, 2]);
});

test("a file that the container's creator has mounted is none of ours; the kernel's part is that of the plain mode", async () => {
  const parts = { journal: new Journal(state), onChange: () => undefined };
  const fact = aContainer();
  const mode = new SearchMode(fact, SHOP, { ...parts, base: CONTAINER_BY_PROCESS, openFile: undefined });
  await mode.onVerified();
  assert.match(mode.problem ?? "", /another file is mounted at \/etc\/resolv\.conf/);
  assert.equal(mode.onlyByProcess, CONTAINER_BY_PROCESS.onlyByProcess);
  assert.deepEqual(mode.capture(), CONTAINER_MODE.capture());
  mode.withdraw();
});
