// Proves which queries the page shows as one lookup: A and AAAA of one name in one container at about the same time, and nothing else;
// and what the line says.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { QueryReport } from "../../src/api/queries.ts";
import { type Lookup, addQuery, lookupText } from "../../src/ui/page/model/lookup.ts";
import { sampleSnapshot } from "../support/page/sample.ts";

const NOW_MS = Date.parse("2026-01-01T12:00:00Z");
const A = { type: "A", addresses: ["172.18.0.2"] };
const NODATA = { type: "AAAA", addresses: [], answers: 0 };

function query(changes: Partial<QueryReport>, atMs = 0): QueryReport {
  const { queries } = sampleSnapshot({ containers: [], queries: [changes], nowMs: NOW_MS });
  const [report = assert.fail()] = queries?.queries ?? [];
  return { ...report, time: new Date(NOW_MS + atMs).toISOString() };
}

/** The lines of these queries, the latest first. */
function linesOf(...queries: readonly QueryReport[]): Lookup[] {
  const lines: Lookup[] = [];
  for (const [index, each] of queries.entries()) addQuery(lines, each, index);
  return lines;
}

function typesOf(...queries: readonly QueryReport[]): string[] {
  return linesOf(...queries).map((line) => lookupText(line).types);
}

test("A and AAAA of one lookup are one line, whichever arrives first, and a retry is another one", () => {
  assert.deepEqual(typesOf(query(A), query(NODATA, 1)), ["A, AAAA"]);
  assert.deepEqual(typesOf(query(NODATA), query(A, 1)), ["A, AAAA"]);
  const retried = [query(A), query(NODATA), query(A, 100), query(NODATA, 100)];
  assert.deepEqual(typesOf(...retried), ["A, AAAA", "A, AAAA"]);
});

test("others are not: another name, container or type, a later lookup, a hidden name", () => {
  for (const other of [
    query({ ...NODATA, name: "db" }),
    query({ ...NODATA, container: "shop-api-1" }),
    query({ ...NODATA, type: "TXT" }),
    query({ ...A }),
    query(NODATA, 1_000),
  ]) {
    assert.equal(linesOf(query(A), other).length, 2, JSON.stringify(other));
  }
  assert.equal(linesOf(query({ ...A, name: null }), query({ ...NODATA, name: null })).length, 2);
});

test("of many containers at once, each line gets its own second query", () => {
  const containers = Array.from({ length: 40 }, (_, index) => `c${index}`);
  const all = [A, NODATA].flatMap((each) => containers.map((container) => query({ ...each, container })));
  const lines = linesOf(...all);
  assert.equal(lines.length, 40);
  assert.ok(lines.every(({ queries }) => queries.every(({ container }) => container === queries[0].container)));
});

test("a line says the address and not that there is no other one, and what fails where one of the two does", () => {
  const textOf = (...queries: readonly QueryReport[]): readonly [string, boolean, string] => {
    const [line = assert.fail()] = linesOf(...queries);
    const { result, isBad, type } = lookupText(line);
    return [result, isBad, type];
  };
  assert.deepEqual(textOf(query(A), query(NODATA)), ["172.18.0.2", false, "A"]);
  assert.deepEqual(textOf(query(A), query({ type: "AAAA", addresses: ["fd00::2"] })), [
    "172.18.0.2, fd00::2",
    false,
    "A",
  ]);
  assert.deepEqual(textOf(query(NODATA)), ["NODATA", false, "AAAA"]);
  const nx = { rcode: "NXDOMAIN", addresses: [], answers: 0 };
  assert.deepEqual(textOf(query({ ...nx, type: "A" }), query({ ...nx, type: "AAAA" })), ["NXDOMAIN", true, "A"]);
  assert.deepEqual(textOf(query(A), query({ ...nx, type: "AAAA", rcode: "SERVFAIL" })), [
    "172.18.0.2, SERVFAIL",
    true,
    "AAAA",
  ]);
});
