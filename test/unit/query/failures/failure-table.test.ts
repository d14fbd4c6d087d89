// Proves that a failure table counts what fails, knows what has resolved since, costs nothing without failures and a
// bounded amount with them, and that no flood of names makes it lose a container's name.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { FailureRecord } from "../../../../src/base/model/query-record.ts";
import { FLAGS_AT, TC } from "../../../../src/base/dns/header.ts";
import { RCODE } from "../../../../src/base/dns/rcode.ts";
import { presentation } from "../../../../src/base/dns/name.ts";
import { type FailureTable, FailureTables } from "../../../../src/query/failures/failure-table.ts";
import { Client } from "../../../../src/query/client/client.ts";
import { type Outcome, STAGE } from "../../../../src/query/record/outcome.ts";
import { TYPE, aQuery, aRecord, aReplyTo, aView } from "../../../support/scripted/builders.ts";
import { aDelivered, anOutcome } from "../../support/outcome.ts";
import { outputTaken, settledBufferBytes } from "../../support/buffer-memory.ts";

const MINUTE = 60_000;
const STEP_MS = 5_000;
const SAMPLE = 16;

class Rig {
  nowMs = 10 * MINUTE;
  readonly tables: FailureTables;
  readonly table: FailureTable;
  readonly client: Client;

  constructor(names: "full" | "hidden" | "off" = "full") {
    this.tables = new FailureTables(names, () => this.nowMs);
    this.table = this.tables.open("c1");
    const dial = (): number => assert.fail();
    this.client = new Client(aView(), dial, undefined, undefined, undefined, this.table);
  }

  /** Records a query that was answered at once. */
  ask(name: string, rcode: number, type: number = TYPE.A, table: FailureTable = this.table): void {
    table.note(anAnswer(name, rcode, type));
  }

  get records(): FailureRecord[] {
    return [...this.table.records()];
  }

  record(name: string): FailureRecord {
    return this.records.find((each) => each.name === name) ?? assert.fail(`no ${name}`);
  }

  get names(): (string | null)[] {
    return this.records.map(({ name }) => name);
  }
}

test("what fails is counted by name, type and result, whatever its letter case", () => {
  const rig = new Rig();
  for (const name of ["db", "DB", "Db"]) rig.ask(name, RCODE.NXDOMAIN);
  rig.nowMs += 1_000;
  rig.ask("db", RCODE.NXDOMAIN);
  rig.ask("db", RCODE.NXDOMAIN, TYPE.AAAA);
  rig.ask("db", RCODE.SERVFAIL);
  assert.deepEqual(
    rig.records.map(({ name, type, rcode, count, perMinute }) => [name, type, rcode, count, perMinute]),
    [
      ["db", TYPE.A, RCODE.NXDOMAIN, 4, 4],
      ["db", TYPE.AAAA, RCODE.NXDOMAIN, 1, 1],
      ["db", TYPE.A, RCODE.SERVFAIL, 1, 1],
    ],
  );
  const { firstMs, lastMs, successMs, isLocal } = rig.record("db");
  assert.deepEqual([firstMs, lastMs, successMs, isLocal], [10 * MINUTE, 10 * MINUTE + 1_000, undefined, true]);
});

test("the rate is that of the last minute", () => {
  const rig = new Rig();
  for (let i = 0; i < 60; i++) {
    rig.ask("db", RCODE.NXDOMAIN);
    rig.nowMs += 1_000;
  }
  assert.equal(rig.record("db").perMinute, 60);
  rig.nowMs += MINUTE / 2;
  assert.equal(rig.record("db").perMinute, 30);
  rig.nowMs += MINUTE;
  assert.equal(rig.record("db").perMinute, 0);
});

test("a success of the same name and type is noted, of another type or name it is not", () => {
  const rig = new Rig();
  rig.ask("db", RCODE.NXDOMAIN);
  rig.ask("db", 0, TYPE.AAAA);
  rig.ask("db2", 0);
  rig.ask("d", 0);
  assert.equal(rig.record("db").successMs, undefined);
  rig.nowMs += 7;
  rig.ask("DB", 0);
  assert.equal(rig.record("db").successMs, rig.nowMs);
});

test("a truncated reply is no success: it sends the client to TCP", () => {
  const rig = new Rig();
  rig.ask("db", RCODE.SERVFAIL);
  const outcome = anAnswer("db", 0);
  outcome.reply[outcome.at + FLAGS_AT] = (outcome.reply[outcome.at + FLAGS_AT] ?? 0) | TC;
  rig.table.note(outcome);
  assert.equal(rig.record("db").successMs, undefined);
});

test("a failure just before a related name resolves may be a step of one lookup", () => {
  const rig = new Rig();
  rig.ask("db.corp.test", RCODE.NXDOMAIN);
  rig.ask("other.corp.test", RCODE.NXDOMAIN);
  rig.ask("db", 0);
  assert.deepEqual([rig.record("db.corp.test").steps, rig.record("db.corp.test").isStepLast], [1, true]);
  assert.deepEqual([rig.record("other.corp.test").steps, rig.record("other.corp.test").isStepLast], [0, false]);
  rig.ask("db", 0);
  assert.equal(rig.record("db.corp.test").steps, 1, "one failure is one step");
  rig.ask("db.corp.test", RCODE.NXDOMAIN);
  rig.nowMs += STEP_MS + 1;
  rig.ask("db", 0);
  const { count, steps, isStepLast } = rig.record("db.corp.test");
  assert.deepEqual([count, steps, isStepLast], [2, 1, false], "too late");
});

test("malformed queries, probes and dns11's own queries are not recorded; a name cannot make a query one of these", () => {
  const rig = new Rig();
  const query = aQuery({ name: "db" });
  const parts = { reply: aReplyTo(query, RCODE.FORMERR), nameEnd: query.length - 4 };
  for (const stage of [STAGE.malformed, STAGE.refused, STAGE.probe, STAGE.ignored, STAGE.deferred]) {
    rig.client.record(anOutcome({ ...parts, stage }));
  }
  const explained = anOutcome({ ...parts, reply: aReplyTo(query, RCODE.NXDOMAIN) });
  explained.isOwn = true;
  rig.client.record(explained);
  assert.equal(rig.table.hasEntries, false);
  assert.equal(rig.client.counters.queries, 4, "of the stages above, all but the probe");
  rig.ask("dns11-doctor-0123456789abcdef.corp.test", RCODE.NXDOMAIN);
  assert.equal(rig.table.hasEntries, true);
});

test("a client records forwarded failures, and an empty answer where that is a failure", () => {
  const rig = new Rig();
  const query = aQuery({ name: "api.corp.test" });
  rig.client.record(aDelivered({ query, reply: aReplyTo(query, RCODE.SERVFAIL), result: "failed" }));
  const other = aQuery({ name: "web" });
  const empty = anOutcome({ reply: aReplyTo(other), nameEnd: other.length - 4 });
  rig.client.record(empty);
  assert.deepEqual(rig.names, ["api.corp.test"]);
  empty.lacksAddress = true;
  rig.client.record(empty);
  assert.deepEqual(
    rig.records.map(({ name, rcode }) => [name, rcode]),
    [
      ["web", 0],
      ["api.corp.test", RCODE.SERVFAIL],
    ],
  );
});

test("hidden names are not stored, only that there are failures; with off there is nothing", () => {
  const rig = new Rig("hidden");
  for (const name of ["db", "cache", "a.test", "b.test", "c.test"]) rig.ask(name, RCODE.NXDOMAIN);
  assert.deepEqual(
    rig.records.map(({ name, count, isLocal }) => [name, count, isLocal]),
    [
      [null, 2, true],
      [null, 3, false],
    ],
  );
  const off = new Rig("off");
  off.ask("db", RCODE.NXDOMAIN);
  assert.equal(off.table.hasEntries, false);
});

test("hiding names later drops those that are stored", () => {
  const rig = new Rig();
  rig.ask("db", RCODE.NXDOMAIN);
  rig.tables.setNames("hidden");
  assert.deepEqual(rig.names, []);
  assert.equal(rig.table.hasEntries, false);
});

test("without failures there is no memory; with any number of them at most 4 KB", async () => {
  // Made before, so that only tables are measured.
  const success = anAnswer("web", 0);
  const failures = Array.from({ length: 200 }, (_, i) => [`name-${i}`, `name-${i}.outside.test`])
    .flat()
    .map((name) => anAnswer(name, RCODE.NXDOMAIN));
  const rigs = Array.from({ length: 100 }, () => new Rig());
  await outputTaken();
  const before = await settledBufferBytes();
  for (const { table } of rigs) table.note(success);
  assert.ok(((await settledBufferBytes()) - before) / rigs.length < 256);
  for (const { table } of rigs) for (const each of failures) table.note(each);
  const each = ((await settledBufferBytes()) - before) / rigs.length;
  assert.ok(each > 0 && each <= 4_096, `${each} bytes`);
  assert.ok(rigs.every((rig) => rig.names.length > 40));
});

test("a flood of outside names evicts no name like a container's, nor a known name with dots", () => {
  const rig = new Rig();
  rig.tables.setContainerNames((labels, length) => presentation(labels, 0, length).endsWith(".back"));
  rig.ask("db", RCODE.NXDOMAIN);
  rig.ask("db.back", RCODE.NXDOMAIN);
  for (let i = 0; i < 10_000; i++) {
    rig.ask(`random-${i}.outside.test`, RCODE.NXDOMAIN);
    if (i % 100 === 0) rig.nowMs += 1;
  }
  assert.ok(rig.names.includes("db") && rig.names.includes("db.back"));
  // After a flood, a new outside name is recorded after some failures; a container's name always at once.
  rig.ask("cache", RCODE.NXDOMAIN);
  rig.nowMs += 1_000;
  for (let i = 0; i <= SAMPLE; i++) rig.ask("late.outside.test", RCODE.NXDOMAIN);
  assert.ok(rig.names.includes("cache") && rig.names.includes("late.outside.test"), String(rig.names));
});

test("the name that failed least recently is evicted, however often it failed before", () => {
  const rig = new Rig();
  for (let i = 0; i < 200; i++) {
    rig.nowMs += 1;
    rig.ask(`name-${i}`, RCODE.NXDOMAIN);
    rig.ask("steady", RCODE.NXDOMAIN);
  }
  const { names } = rig;
  assert.ok(names.includes("steady") && names.includes("name-199") && !names.includes("name-0"));
  assert.equal(rig.record("steady").count, 200);
});

test("for any sequence of names the entries agree with a simple count, as long as all of them fit", () => {
  const label = fc.string({ minLength: 1, maxLength: 63, unit: "binary-ascii" });
  const name = fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => wire(labels));
  const queries = fc.array(fc.tuple(fc.nat(5), fc.constantFrom(0, RCODE.NXDOMAIN, RCODE.SERVFAIL)), { maxLength: 60 });
  fc.assert(
    fc.property(fc.uniqueArray(name, { minLength: 6, maxLength: 6, selector: keyOf }), queries, (names, asked) => {
      const rig = new Rig();
      const counts = new Map<string, number>();
      for (const [index, rcode] of asked) {
        const query = aQuery({ name: names[index] as Buffer });
        // Names contain zero bytes, so the reply is built by hand.
        const reply = Buffer.from(query);
        reply[3] = rcode;
        rig.table.note(anOutcome({ reply, nameEnd: query.length - 4 }));
        const key = `${keyOf(names[index] as Buffer)} ${rcode}`;
        if (rcode !== 0) counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      const near = rig.records.filter((record) => record.isLocal);
      for (const each of near) assert.equal(each.count, counts.get(`${each.name} ${each.rcode}`));
      const outside = rig.records.filter((record) => !record.isLocal);
      for (const each of outside) assert.ok(each.count <= (counts.get(`${each.name} ${each.rcode}`) ?? 0));
      assert.ok(rig.records.length <= counts.size);
    }),
  );
});

test("a container that fails, ends and starts again keeps its failures, for a while", () => {
  const rig = new Rig();
  rig.ask("db", RCODE.NXDOMAIN);
  rig.tables.name("c1", "shop-api-1");
  rig.tables.close(rig.table);
  assert.deepEqual(
    [...rig.tables.tables()].map(({ containerName }) => containerName),
    ["shop-api-1"],
  );
  const again = rig.tables.open("c1");
  rig.ask("db", RCODE.NXDOMAIN, TYPE.A, again);
  assert.deepEqual([[...again.records()][0]?.count, again.containerName], [2, undefined]);
  rig.tables.close(again);
  rig.nowMs += LIMITS.failureLingerMs;
  assert.deepEqual([...rig.tables.tables()], []);
  const empty = rig.tables.open("c2");
  rig.tables.close(empty);
  assert.notEqual(rig.tables.open("c2"), empty, "a table without entries is not retained");
});

test("of too many containers the one whose last failure is oldest loses its entries", () => {
  const rig = new Rig();
  const others = Array.from({ length: LIMITS.failureTables }, (_, index) => rig.tables.open(`other-${index}`));
  rig.ask("db", RCODE.NXDOMAIN);
  for (const table of others) {
    rig.nowMs += 1;
    rig.ask("db", RCODE.NXDOMAIN, TYPE.A, table);
  }
  assert.equal([...rig.tables.tables()].length, LIMITS.failureTables);
  assert.equal(rig.table.hasEntries, false);
});

/** An outcome that was answered at once. */
function anAnswer(name: string, rcode: number, type: number = TYPE.A): Outcome {
  const query = aQuery({ name, type });
  const answers = rcode === 0 ? [aRecord({ owner: Buffer.of(0xc0, 12), type, ttl: 1, data: Buffer.alloc(4) })] : [];
  return anOutcome({ reply: aReplyTo(query, rcode, answers), nameEnd: query.length - 4, type });
}

function wire(labels: readonly string[]): Buffer {
  const parts = labels.map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label, "latin1")]));
  return Buffer.concat([...parts, Buffer.of(0)]);
}

function keyOf(name: Buffer): string {
  return presentation(
    Buffer.from(
      name.toString("latin1").replaceAll(/[A-Z]/g, (c) => c.toLowerCase()),
      "latin1",
    ),
    0,
    name.length - 1,
  );
}
