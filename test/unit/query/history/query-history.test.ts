// Proves that a query history has the last queries, complete and in order, whatever their names are and however often
// the ring wraps; that its numbers show gaps; and that it stays within its limits.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { LIMITS } from "../../../../src/base/limits.ts";
import { addressBytes } from "../../../../src/base/model/address.ts";
import type { QueryRecord, QueryResult } from "../../../../src/base/model/query-record.ts";
import { QueryHistories } from "../../../../src/query/history/query-histories.ts";
import type { QueryHistory } from "../../../../src/query/history/query-history.ts";
import { TYPE, aName, aQuery, aRecord, aReplyTo } from "../../../support/scripted/builders.ts";
import { aDelivered, anOutcome } from "../../support/outcome.ts";

// The longest name: 254 octets without the root label.
const LONGEST = [63, 63, 63, 61].map((length, index) => "abcd".charAt(index).repeat(length)).join(".");
const ALL = 0;

test("without queries there are no records, and no memory is allocated", () => {
  const history = aHistory();
  assert.deepEqual([...history.since(ALL)], []);
  assert.ok(history.isEmpty);
  assert.equal(history.oldestSeq, history.firstSeq);
  assert.equal(history.lastSeq, history.firstSeq - 1);
});

test("a record has the query and its result", () => {
  const history = aHistory();
  const answers = [60, 30].map((ttl) =>
    aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl, data: Buffer.alloc(4) }),
  );
  note(history, { name: "Web.Backend", type: TYPE.AAAA, answers, result: "cached", isStream: true });
  const [query = assert.fail()] = [...history.since(ALL)];
  const { seq, atMs, ...rest } = query;
  assert.equal(seq, history.firstSeq);
  assert.ok(atMs > 0 && atMs <= performance.now(), `${atMs} is a time of before`);
  assert.deepEqual(rest, {
    name: "Web.Backend",
    type: TYPE.AAAA,
    rcode: 0,
    answers: 2,
    addresses: [],
    ttl: 60,
    isStream: true,
    result: "cached",
    source: null,
    upstream: null,
    rule: null,
    tookMs: 0,
  });
});

test("the TTL is that of the first record, whether its owner is compressed or not", () => {
  const history = aHistory();
  const ttl = 0xffff_fff0;
  for (const owner of ["web.backend", ".", Buffer.of(3, 0x77, 0x65, 0x62, 0xc0, 12)]) {
    note(history, { name: "web.backend", answers: [aRecord({ owner, type: TYPE.A, ttl })] });
  }
  note(history, { name: "web.backend", answers: [Buffer.of(3, 0x77)] });
  assert.deepEqual(
    [...history.since(ALL)].map((query) => query.ttl),
    [ttl, ttl, ttl, null],
  );
});

test("a record has the first two addresses of the answer, behind aliases too", () => {
  const history = aHistory();
  const owner = Buffer.of(0xc0, 12);
  const a = (...data: number[]): Buffer => aRecord({ owner, type: TYPE.A, data: Buffer.from(data) });
  const aaaa = aRecord({ owner: ".", type: TYPE.AAAA, data: Buffer.from(`fd${"00".repeat(14)}07`, "hex") });
  const alias = aRecord({ owner, type: TYPE.CNAME, data: Buffer.of(1, 0x78, 0) });
  const addresses = (type: number, ...answers: Buffer[]): readonly string[] => {
    note(history, { name: "web", type, answers });
    return [...history.since(ALL)].at(-1)?.addresses ?? [];
  };
  assert.deepEqual(addresses(TYPE.A, a(10, 0, 0, 1), a(10, 0, 0, 2), a(10, 0, 0, 3)), ["10.0.0.1", "10.0.0.2"]);
  assert.deepEqual(addresses(TYPE.A, alias, a(192, 0, 2, 255)), ["192.0.2.255"]);
  assert.deepEqual(addresses(TYPE.AAAA, alias, aaaa), ["fd00::7"]);
  assert.deepEqual(addresses(TYPE.AAAA, a(10, 0, 0, 1)), [], "of another type");
  assert.deepEqual(addresses(TYPE.TXT, a(10, 0, 0, 1)), []);
  assert.deepEqual(addresses(TYPE.A, a(10, 0, 0, 1).subarray(0, -1)), [], "cut off");
  assert.deepEqual(addresses(TYPE.A, Buffer.of(63, 1, 2)), [], "a name that does not end");
});

test("control characters are escaped anywhere in a name", () => {
  const history = aHistory();
  const evil = Buffer.concat([Buffer.of(8), Buffer.from("\u001B[31ma\u0007\u009B", "latin1"), Buffer.of(1, 0x2e, 0)]);
  note(history, { name: evil });
  assert.equal(only(history).name, "\\027[31ma\\007\\155.\\.");
});

test("a malformed query has neither name nor type; the root has a name", () => {
  const history = aHistory();
  history.tick();
  history.note(anOutcome({ reply: Buffer.from("000080010000000000000000", "hex"), nameEnd: 0, result: "refused" }));
  note(history, { name: "." });
  assert.deepEqual(
    [...history.since(ALL)].map(({ name, type, rcode, result }) => [name, type, rcode, result]),
    [
      [null, 0, 1, "refused"],
      [".", TYPE.A, 0, "local"],
    ],
  );
});

test("the longest names wrap around the ring", () => {
  const history = aHistory();
  for (let i = 0; i < 1_000; i++) note(history, { name: LONGEST, type: i });
  const kept = [...history.since(ALL)];
  assert.ok(kept.length >= Math.floor(LIMITS.historyBytes / 288) - 1, `${kept.length} records`);
  assert.ok(kept.every(({ name }) => name === LONGEST));
  assert.deepEqual(
    kept.map(({ type }) => type),
    Array.from({ length: kept.length }, (_, index) => 1_000 - kept.length + index),
  );
});

/** Queries of type A have two addresses here, of type AAAA one. */
function addressesOf(type: number): string[] {
  return type === TYPE.A ? ["10.0.0.1", "10.0.0.2"] : type === TYPE.AAAA ? ["fd00::1"] : [];
}

function answersOf(type: number): Buffer[] {
  return addressesOf(type).map((text) =>
    aRecord({ owner: Buffer.of(0xc0, 12), type, data: Buffer.from(addressBytes(text) ?? []) }),
  );
}

test("after any sequence of queries the last ones are there, complete and without a gap", () => {
  const label = fc.integer({ min: 1, max: 63 }).map((length) => "x".repeat(length));
  const name = fc.array(label, { maxLength: 3 }).map((labels) => (labels.length === 0 ? "." : labels.join(".")));
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 600 }), (names) => {
      const history = aHistory();
      for (const [index, each] of names.entries())
        note(history, { name: each, type: index, answers: answersOf(index) });
      const kept = [...history.since(ALL)];
      const first = names.length - kept.length;
      for (const { type, addresses } of kept) assert.deepEqual(addresses, addressesOf(type));
      assert.deepEqual(
        kept.map((query) => [query.name, query.type, query.seq]),
        names.slice(first).map((each, index) => [each, first + index, history.firstSeq + first + index]),
      );
      assert.equal(history.oldestSeq, history.firstSeq + first);
      assert.equal(history.lastSeq, history.firstSeq + names.length - 1);
      // The dropped record would not have fit: no record with such a name is longer than this.
      if (first > 0) assert.ok(kept.length >= Math.floor(LIMITS.historyBytes / 216) - 2, `only ${kept.length} of all`);
    }),
    { numRuns: 60 },
  );
});

test("a reader gets the records after its number, and at most the last N", () => {
  const history = aHistory();
  for (let i = 0; i < 10; i++) note(history, { type: i });
  const { firstSeq } = history;
  assert.deepEqual(types(history.since(firstSeq + 6)), [7, 8, 9]);
  assert.deepEqual(types(history.since(firstSeq + 6, 2)), [8, 9]);
  assert.deepEqual(types(history.since(firstSeq + 9)), []);
  assert.deepEqual(types(history.since(ALL, 1)), [9]);
});

test("a forwarded query is recorded with its server and duration", () => {
  const history = aHistory();
  const query = aQuery({ name: "example.org", type: TYPE.AAAA });
  const delivered = { query, type: TYPE.AAAA, arrivedMs: 1_000 };
  const servers = ["192.0.2.1", "192.0.2.2", "192.0.2.1"];
  for (const address of servers) {
    const server = { from: "host", address, port: 53 } as const;
    history.note(aDelivered({ ...delivered, reply: aReplyTo(query, 3), server, isStream: true, nowMs: 1_250 }));
  }
  history.note(aDelivered({ ...delivered, reply: aReplyTo(query, 2), result: "failed" }));
  const records = [...history.since(ALL)];
  assert.deepEqual(
    records.map(({ name, rcode, result, upstream, isStream }) => [name, rcode, result, upstream, isStream]),
    [
      ...servers.map((address) => ["example.org", 3, "forwarded", `host(${address})`, true]),
      ["example.org", 2, "failed", null, false],
    ],
  );
  assert.deepEqual([records[0]?.atMs, records[0]?.tookMs, records[3]?.tookMs], [1_000, 250, 0]);
});

test("a container with too many different servers starts a new history rather than show a wrong one", () => {
  const history = aHistory();
  const query = aQuery();
  for (let port = 1; port <= 600; port++) {
    const server = { from: "container", address: "192.0.2.1", port } as const;
    history.note(aDelivered({ query, reply: aReplyTo(query), server }));
    const last = [...history.since(ALL)].at(-1);
    assert.equal(last?.upstream, port === 53 ? "192.0.2.1" : `192.0.2.1:${port}`);
    assert.equal(last?.seq, history.firstSeq + port - 1);
  }
});

test("hidden records everything but names; off records nothing", () => {
  const histories = new QueryHistories("hidden");
  const history = histories.open("one");
  note(history, { name: "secret.example", type: TYPE.MX });
  const { name, type } = only(history);
  assert.deepEqual([name, type], [null, TYPE.MX]);
  const nothing = new QueryHistories("off").open("one");
  note(nothing, { name: "secret.example" });
  assert.ok(nothing.isEmpty);
});

for (const [before, after, staysThere] of [
  ["full", "hidden", false],
  ["full", "off", false],
  ["hidden", "off", false],
  ["hidden", "full", true],
  ["full", "full", true],
] as const) {
  test(`records made with names ${before} are ${staysThere ? "kept" : "removed"} with names ${after}`, () => {
    const histories = new QueryHistories(before);
    const [open, closed] = [histories.open("one"), histories.open("two")];
    for (const history of [open, closed]) note(history);
    histories.close(closed);
    histories.setNames(after);
    assert.deepEqual(
      [...histories.histories()].flatMap((history) => [...history.since(ALL)]).length,
      staysThere ? 2 : 0,
    );
    note(open);
    assert.equal(open.lastSeq, open.firstSeq + (after === "off" ? 0 : 1), "numbering continues");
  });
}

test("the history of a container that has ended is kept for a while, with its name", () => {
  let nowMs = 0;
  const histories = new QueryHistories("full", () => nowMs);
  const [gone, silent] = [histories.open("one"), histories.open("two")];
  note(gone);
  histories.name("one", "app");
  histories.close(gone);
  histories.close(silent);
  const again = histories.open("one");
  assert.deepEqual([...histories.histories("one")], [gone, again]);
  assert.deepEqual([gone.containerName, again.containerName], ["app", undefined]);
  assert.deepEqual([...histories.histories("two")], [], "without queries nothing is kept");
  nowMs += LIMITS.historyLingerMs;
  assert.deepEqual([...histories.histories("one")], [again]);
});

test("a container that starts again goes on with its numbers, also where the clock was set back", (t) => {
  const histories = new QueryHistories("full");
  const before = histories.open("one");
  note(before);
  histories.close(before);
  const wall = Date.now();
  t.mock.method(Date, "now", () => wall - 3_600_000);
  const again = histories.open("one");
  note(again);
  assert.equal([...again.since(before.lastSeq)].length, 1);
});

test("of many ended containers, the oldest are dropped first", () => {
  const histories = new QueryHistories("full", () => 0);
  const all = Array.from({ length: LIMITS.historiesLingering + 3 }, (_, index) => histories.open(String(index)));
  for (const history of all) {
    note(history);
    histories.close(history);
  }
  assert.deepEqual([...histories.histories()], all.slice(3));
});

function aHistory(): QueryHistory {
  return new QueryHistories("full").open("one");
}

type Recorded = {
  readonly name?: string | Buffer;
  readonly type?: number;
  readonly answers?: readonly Buffer[];
  readonly result?: QueryResult;
  readonly isStream?: boolean;
};

function note(history: QueryHistory, parts: Recorded = {}): void {
  const { name = "web", type = TYPE.A, answers = [], ...rest } = parts;
  const reply = aReplyTo(aQuery({ name, type }), 0, answers);
  const nameLength = (typeof name === "string" ? aName(name) : name).length;
  history.tick();
  history.note(anOutcome({ reply, nameEnd: 12 + nameLength, type, ...rest }));
}

function only(history: QueryHistory): QueryRecord {
  const [query, ...others] = history.since(ALL);
  assert.deepEqual(others, []);
  return query ?? assert.fail("nothing was recorded");
}

function types(queries: Iterable<QueryRecord>): number[] {
  return [...queries].map(({ type }) => type);
}
