// Proves the lines of `dns11 tail` at 80 and 160 columns, as captured: answers with their containers, and causes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { QueryLines } from "../../../cmd/text/query-lines.ts";
import { PLAIN } from "../../../cmd/text/terminal.ts";
import { aCause, anOwner, aReport } from "../support/query-reports.ts";
import { useEnvironment } from "../support/environment.ts";
import { assertGolden } from "../support/golden.ts";

// Times are local.
useEnvironment({ TZ: "UTC" });

const QUERIES = [
  aReport({ name: "db", addresses: ["172.19.0.3"], owners: [anOwner("172.19.0.3", "shop-db-1")], ttl: 5 }),
  aReport({
    name: "api",
    answers: 3,
    addresses: ["172.18.0.2", "172.18.0.3"],
    owners: [anOwner("172.18.0.2", "shop-api-1"), anOwner("172.18.0.3", "shop-api-2")],
    ttl: 5,
  }),
  aReport({ container: "shop-api-1", name: "cache", rcode: "NXDOMAIN", answers: 0, ttl: null, cause: aCause() }),
  aReport({
    container: "shop-worker-1",
    name: "www.example.org",
    addresses: ["192.0.2.7"],
    result: "forwarded",
    ms: 12.34,
    upstream: "host(10.99.0.1)",
    transport: "tcp",
  }),
  aReport({ name: "example.org", type: "MX", answers: 2, result: "stale", ttl: 30 }),
  aReport({
    name: "api.example.org",
    rcode: "SERVFAIL",
    answers: 0,
    ttl: null,
    result: "failed",
    ms: 4012.3,
    cause: null,
  }),
  { container: "shop-worker-1", missed: 120 },
  aReport({ name: null, type: null, rcode: "FORMERR", answers: 0, ttl: null, result: "refused" }),
];

for (const width of [80, 160]) {
  test(`queries at ${width} columns are as captured`, () => {
    const lines = new QueryLines({ ...PLAIN, width }, ["shop-api-1", "shop-worker-1"]);
    const text = QUERIES.map((each) => `${lines.next(each)}\n`).join("");
    assertGolden(`tail.${width}`, text);
    assert.deepEqual(
      text.split("\n").filter((line) => line.length > width),
      [],
    );
  });
}

test("a local answer names its source, unless it is the usual one", () => {
  const lines = new QueryLines(PLAIN, []);
  lines.next(aReport());
  assert.match(lines.next(aReport({ source: "declared", ttl: 5 })), /ttl 5, from declared names$/);
  assert.match(lines.next(aReport({ source: "zone", ttl: null })), /from service names$/);
  for (const source of ["network", "rule"] as const) assert.doesNotMatch(lines.next(aReport({ source })), /from/);
  const forwarded = aReport({ result: "forwarded", source: null, upstream: "host(10.0.0.1)" });
  assert.match(lines.next(forwarded), /from host\(10\.0\.0\.1\)$/);
});

test("without a terminal a query is one line", () => {
  const lines = new QueryLines(PLAIN, []);
  lines.next(aReport());
  assert.doesNotMatch(lines.next(aReport({ cause: aCause({ sentence: "word ".repeat(100) }) })), /\n/);
});

test("control characters are escaped", () => {
  const evil = "\u001B[31m\n";
  const lines = new QueryLines({ ...PLAIN, width: 80 }, [evil]);
  const query = aReport({ container: evil, name: evil, upstream: evil, cause: aCause({ sentence: evil }) });
  assert.doesNotMatch(lines.next(query), /[^\P{Cc}\n]/u);
  const owned = aReport({ addresses: ["10.0.0.1"], owners: [anOwner("10.0.0.1", evil)] });
  assert.doesNotMatch(lines.next(owned), /[^\P{Cc}\n]/u);
});
