// Proves that a ledger holds the last queries whole and in order, whatever their names are and however often its memory
// has gone round; that its numbers show what is missing; and that it keeps no more than it may.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { AskedQuery, How } from "../../../../src/base/model/asked-query.ts";
import { Book } from "../../../../src/query/ledger/book.ts";
import type { Ledger } from "../../../../src/query/ledger/ledger.ts";
import { TYPE, aName, aQuery, aRecord, aReplyTo } from "../../../support/scripted/builders.ts";
import { aDelivered, anOutcome } from "../../support/outcome.ts";

// As long as a name may be: 254 octets without the zero at its end.
const LONGEST = [63, 63, 63, 61].map((length, index) => "abcd".charAt(index).repeat(length)).join(".");
const ALL = 0;

test("nothing was asked: nothing is there, and no memory is taken", () => {
  const ledger = aLedger();
  assert.deepEqual([...ledger.since(ALL)], []);
  assert.ok(ledger.isEmpty);
  assert.equal(ledger.oldestSeq, ledger.firstSeq);
  assert.equal(ledger.lastSeq, ledger.firstSeq - 1);
});

test("a query is there as it was asked, with what became of it", () => {
  const ledger = aLedger();
  const answers = [60, 30].map((ttl) =>
    aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl, data: Buffer.alloc(4) }),
  );
  note(ledger, { name: "Web.Backend", type: TYPE.AAAA, answers, how: "cached", isStream: true });
  const [query = assert.fail()] = [...ledger.since(ALL)];
  const { seq, atMs, ...rest } = query;
  assert.equal(seq, ledger.firstSeq);
  assert.ok(atMs > 0 && atMs <= performance.now(), `${atMs} is a time of before`);
  assert.deepEqual(rest, {
    name: "Web.Backend",
    type: TYPE.AAAA,
    rcode: 0,
    answers: 2,
    ttl: 60,
    isStream: true,
    how: "cached",
    upstream: null,
    tookMs: 0,
  });
});

test("the TTL is that of the first record, whether its owner is written in full or not", () => {
  const ledger = aLedger();
  const ttl = 0xffff_fff0;
  for (const owner of ["web.backend", ".", Buffer.of(3, 0x77, 0x65, 0x62, 0xc0, 12)]) {
    note(ledger, { name: "web.backend", answers: [aRecord({ owner, type: TYPE.A, ttl })] });
  }
  note(ledger, { name: "web.backend", answers: [Buffer.of(3, 0x77)] });
  assert.deepEqual(
    [...ledger.since(ALL)].map((query) => query.ttl),
    [ttl, ttl, ttl, null],
  );
});

test("what would steer a terminal is written out, in every place of a name", () => {
  const ledger = aLedger();
  const evil = Buffer.concat([Buffer.of(8), Buffer.from("\u001B[31ma\u0007\u009B", "latin1"), Buffer.of(1, 0x2e, 0)]);
  note(ledger, { name: evil });
  assert.equal(only(ledger).name, "\\027[31ma\\007\\155.\\.");
});

test("what cannot be read has neither name nor type, the root has a name", () => {
  const ledger = aLedger();
  ledger.tick();
  ledger.note(anOutcome({ reply: Buffer.from("000080010000000000000000", "hex"), nameEnd: 0, how: "refused" }));
  note(ledger, { name: "." });
  assert.deepEqual(
    [...ledger.since(ALL)].map(({ name, type, rcode, how }) => [name, type, rcode, how]),
    [
      [null, 0, 1, "refused"],
      [".", TYPE.A, 0, "local"],
    ],
  );
});

test("the longest names go round and round", () => {
  const ledger = aLedger();
  for (let i = 0; i < 1_000; i++) note(ledger, { name: LONGEST, type: i });
  const kept = [...ledger.since(ALL)];
  assert.ok(kept.length >= Math.floor(LIMITS.ledgerBytes / 288) - 1, `${kept.length} are kept`);
  assert.ok(kept.every(({ name }) => name === LONGEST));
  assert.deepEqual(
    kept.map(({ type }) => type),
    Array.from({ length: kept.length }, (_, index) => 1_000 - kept.length + index),
  );
});

test("whatever was asked in whatever order, the last queries are there, whole and without a gap", () => {
  const label = fc.integer({ min: 1, max: 63 }).map((length) => "x".repeat(length));
  const name = fc.array(label, { maxLength: 3 }).map((labels) => (labels.length === 0 ? "." : labels.join(".")));
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 600 }), (names) => {
      const ledger = aLedger();
      for (const [index, each] of names.entries()) note(ledger, { name: each, type: index });
      const kept = [...ledger.since(ALL)];
      const first = names.length - kept.length;
      assert.deepEqual(
        kept.map((query) => [query.name, query.type, query.seq]),
        names.slice(first).map((each, index) => [each, first + index, ledger.firstSeq + first + index]),
      );
      assert.equal(ledger.oldestSeq, ledger.firstSeq + first);
      assert.equal(ledger.lastSeq, ledger.firstSeq + names.length - 1);
      // What had to go could not have stayed: no record with such a name is longer than this.
      if (first > 0) assert.ok(kept.length >= Math.floor(LIMITS.ledgerBytes / 216) - 2, `only ${kept.length} of all`);
    }),
    { numRuns: 60 },
  );
});

test("a reader gets what came after the number it has, and of more than it wants, the last", () => {
  const ledger = aLedger();
  for (let i = 0; i < 10; i++) note(ledger, { type: i });
  const { firstSeq } = ledger;
  assert.deepEqual(types(ledger.since(firstSeq + 6)), [7, 8, 9]);
  assert.deepEqual(types(ledger.since(firstSeq + 6, 2)), [8, 9]);
  assert.deepEqual(types(ledger.since(firstSeq + 9)), []);
  assert.deepEqual(types(ledger.since(ALL, 1)), [9]);
});

test("a deferred query is noted with who answered, and how long that took", () => {
  const ledger = aLedger();
  const query = aQuery({ name: "example.org", type: TYPE.AAAA });
  const asked = { query, type: TYPE.AAAA, arrivedMs: 1_000 };
  const servers = ["192.0.2.1", "192.0.2.2", "192.0.2.1"];
  for (const address of servers) {
    const server = { from: "host", address, port: 53 } as const;
    ledger.note(aDelivered({ ...asked, reply: aReplyTo(query, 3), server, isStream: true, nowMs: 1_250 }));
  }
  ledger.note(aDelivered({ ...asked, reply: aReplyTo(query, 2), how: "failed" }));
  const told = [...ledger.since(ALL)];
  assert.deepEqual(
    told.map(({ name, rcode, how, upstream, isStream }) => [name, rcode, how, upstream, isStream]),
    [
      ...servers.map((address) => ["example.org", 3, "forwarded", `host(${address})`, true]),
      ["example.org", 2, "failed", null, false],
    ],
  );
  assert.deepEqual([told[0]?.atMs, told[0]?.tookMs, told[3]?.tookMs], [1_000, 250, 0]);
});

test("a container whose servers are ever new ones begins anew rather than name a wrong one", () => {
  const ledger = aLedger();
  const query = aQuery();
  for (let port = 1; port <= 600; port++) {
    const server = { from: "container", address: "192.0.2.1", port } as const;
    ledger.note(aDelivered({ query, reply: aReplyTo(query), server }));
    const last = [...ledger.since(ALL)].at(-1);
    assert.equal(last?.upstream, port === 53 ? "192.0.2.1" : `192.0.2.1:${port}`);
    assert.equal(last?.seq, ledger.firstSeq + port - 1);
  }
});

test("hidden keeps everything but names; off keeps nothing", () => {
  const book = new Book("hidden");
  const ledger = book.open("one");
  note(ledger, { name: "secret.example", type: TYPE.MX });
  const { name, type } = only(ledger);
  assert.deepEqual([name, type], [null, TYPE.MX]);
  const nothing = new Book("off").open("one");
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
  test(`what was kept with names ${before} is ${staysThere ? "still there" : "forgotten"} with names ${after}`, () => {
    const book = new Book(before);
    const [open, closed] = [book.open("one"), book.open("two")];
    for (const ledger of [open, closed]) note(ledger);
    book.close(closed);
    book.setNames(after);
    assert.deepEqual([...book.ledgers()].flatMap((ledger) => [...ledger.since(ALL)]).length, staysThere ? 2 : 0);
    note(open);
    assert.equal(open.lastSeq, open.firstSeq + (after === "off" ? 0 : 1), "numbers go on");
  });
}

test("the ledger of a container that is gone stays for a while, with its name", () => {
  let nowMs = 0;
  const book = new Book("full", () => nowMs);
  const [gone, silent] = [book.open("one"), book.open("two")];
  note(gone);
  book.name("one", "app");
  book.close(gone);
  book.close(silent);
  const again = book.open("one");
  assert.deepEqual([...book.ledgers("one")], [gone, again]);
  assert.deepEqual([gone.containerName, again.containerName], ["app", undefined]);
  assert.deepEqual([...book.ledgers("two")], [], "who asked nothing leaves nothing");
  nowMs += LIMITS.ledgerLingerMs;
  assert.deepEqual([...book.ledgers("one")], [again]);
});

test("of many containers that are gone, the oldest are forgotten first", () => {
  const book = new Book("full", () => 0);
  const all = Array.from({ length: LIMITS.ledgersLingering + 3 }, (_, index) => book.open(String(index)));
  for (const ledger of all) {
    note(ledger);
    book.close(ledger);
  }
  assert.deepEqual([...book.ledgers()], all.slice(3));
});

function aLedger(): Ledger {
  return new Book("full").open("one");
}

type Noted = {
  readonly name?: string | Buffer;
  readonly type?: number;
  readonly answers?: readonly Buffer[];
  readonly how?: How;
  readonly isStream?: boolean;
};

function note(ledger: Ledger, parts: Noted = {}): void {
  const { name = "web", type = TYPE.A, answers = [], ...rest } = parts;
  const reply = aReplyTo(aQuery({ name, type }), 0, answers);
  const nameLength = (typeof name === "string" ? aName(name) : name).length;
  ledger.tick();
  ledger.note(anOutcome({ reply, nameEnd: 12 + nameLength, type, ...rest }));
}

function only(ledger: Ledger): AskedQuery {
  const [query, ...others] = ledger.since(ALL);
  assert.deepEqual(others, []);
  return query ?? assert.fail("nothing was noted");
}

function types(queries: Iterable<AskedQuery>): number[] {
  return [...queries].map(({ type }) => type);
}
