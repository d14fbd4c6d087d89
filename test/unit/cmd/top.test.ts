// Proves the statistics of top, and that the view fits the screen with any names.

import assert from "node:assert/strict";
import { test } from "node:test";

import { renderSnapshot } from "../../../cmd/top/render.ts";
import { QueryStatistics } from "../../../cmd/top/query-statistics.ts";
import { painterFor } from "../../../cmd/text/terminal.ts";
import { START_MS, aReport } from "../support/query-reports.ts";

const plain = (text: string): string => text;

test("rates and shares come from counters, names and times from the queries seen", () => {
  const statistics = new QueryStatistics();
  statistics.addCounters(counted({ web: { queries: 100, cached: 50 }, db: { queries: 7 } }), START_MS);
  for (let i = 1; i <= 100; i++) statistics.addQuery(aReport({ result: "forwarded", ms: i }), START_MS);
  statistics.addCounters(
    counted({ web: { queries: 1_100, cached: 800, failed: 10, nxdomain: 20 }, db: { queries: 7 } }),
    START_MS + 2_000,
  );
  const { all, containers, names, unseen } = statistics.snapshot(START_MS + 2_000);
  const [web, db] = containers;
  assert.deepEqual(web, {
    container: "web",
    perSecond: 500,
    queries: 1_000,
    cached: 0.75,
    errors: 0.01,
    stale: 0,
    nxdomain: 20,
    failed: 0,
    p50Ms: 50,
    p99Ms: 99,
  });
  assert.deepEqual([db?.container, db?.perSecond, db?.queries, db?.cached, db?.p50Ms], ["db", 0, 0, null, null]);
  assert.deepEqual([all.perSecond, all.queries, all.cached, all.p99Ms], [500, 1_000, 0.75, 99]);
  assert.deepEqual(
    names.map(({ name, queries, containers: from, cached, errors }) => [name, queries, from, cached, errors]),
    [["example.org", 100, 1, 0, 0]],
  );
  assert.equal(unseen, 0);
});

test("names are summed over containers, and only NOERROR and NXDOMAIN are no errors", () => {
  const statistics = new QueryStatistics();
  for (const container of ["web", "db"]) {
    for (const rcode of ["NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED"]) {
      statistics.addQuery(aReport({ container, rcode, result: rcode === "NOERROR" ? "cached" : "local" }), START_MS);
    }
  }
  statistics.addQuery(aReport({ name: null }), START_MS);
  statistics.addQuery({ container: "web", missed: 12 }, START_MS);
  const { names, containers, unseen } = statistics.snapshot(START_MS);
  assert.deepEqual(
    names.map(({ name, queries, containers: from, cached, errors }) => [name, queries, from, cached, errors]),
    [
      ["example.org", 8, 2, 0.25, 0.5],
      [null, 1, 1, 0, 0],
    ],
  );
  assert.deepEqual(
    containers.map(({ container, queries }) => [container, queries]),
    [
      ["web", 5],
      ["db", 4],
    ],
  );
  assert.equal(unseen, 12);
});

test("queries older than a minute expire, and the counters of a restarted container begin at zero", () => {
  const statistics = new QueryStatistics();
  statistics.addQuery(aReport({ time: new Date(START_MS).toISOString() }), START_MS);
  statistics.addQuery({ container: "web", missed: 1 }, START_MS);
  statistics.addCounters(counted({ web: { queries: 1_000 } }), START_MS);
  statistics.addCounters(counted({ web: { queries: 5 } }), START_MS + 1_000);
  assert.equal(statistics.snapshot(START_MS + 1_000).containers[0]?.perSecond, 5);
  for (let second = 60; second < 63; second++)
    statistics.addCounters(counted({ web: { queries: 6 } }), START_MS + second * 1_000);
  const { names, unseen, containers } = statistics.snapshot(START_MS + 62_000);
  assert.deepEqual([names.length, unseen, containers[0]?.queries], [0, 0, 0]);
});

for (const columns of [40, 80, 120, 160, 300]) {
  for (const rows of [10, 24, 60]) {
    test(`the view fits ${columns} columns and ${rows} rows`, () => {
      const lines = renderSnapshot(crowded(), { columns, rows }, plain);
      assert.ok(lines.length <= rows, `${lines.length} lines`);
      if (columns >= 80) for (const line of lines) assert.ok(line.length <= columns, line);
      const text = lines.join("\n");
      assert.match(text, /^CONTAINER +Q\/S/m);
      assert.match(text, /NAME +FROM/);
      assert.match(text, /\(\d+ more\)/);
    });
  }
}

test("control characters are escaped, wherever they come from", () => {
  const statistics = new QueryStatistics();
  statistics.addQuery(aReport({ name: "\u001B]0;owned\u0007\u009B2J.example", container: "evil\u001B[31m" }), START_MS);
  const text = renderSnapshot(statistics.snapshot(START_MS), { columns: 130, rows: undefined }, plain).join("");
  assert.doesNotMatch(text, /\p{Cc}/u);
  assert.match(text, /\\x1b\]0;owned\\x07\\x9b2J\.example/);
});

test("names that are too long keep their ends, and lose the project that all of them have", () => {
  const shown = (...containers: string[]): string[] => {
    const statistics = new QueryStatistics();
    statistics.addCounters(counted(Object.fromEntries(containers.map((name) => [name, { queries: 1 }]))), START_MS);
    const lines = renderSnapshot(statistics.snapshot(START_MS), { columns: 80, rows: undefined }, plain);
    return lines.slice(4, 4 + containers.length).map((line) => line.split(" ")[0] ?? "");
  };
  const services = ["payments-fallback-1", "payments-primary-1", "web-1"];
  assert.deepEqual(shown(...services.map((each) => `acme-platform-checkout-${each}`)), services);
  assert.deepEqual(shown("acme-platform-checkout-web-1", "shop-web-1"), ["acme-pla..heckout-web-1", "shop-web-1"]);
  assert.deepEqual(shown("shop-api-1", "shop-web-1"), ["shop-api-1", "shop-web-1"]);
});

test("without a screen every line is shown", () => {
  const lines = renderSnapshot(crowded(), { columns: 80, rows: undefined }, plain);
  assert.doesNotMatch(lines.join("\n"), /more\)/);
  assert.equal(lines.length, 2 + 2 * (1 + 1 + 100), "the title, and a head and 100 rows of containers and of names");
});

test("colours are only for terminals, and not with NO_COLOR", () => {
  const terminal = { isTTY: true };
  assert.equal(painterFor(terminal, {})("x", "red"), "\u001B[31mx\u001B[0m");
  assert.equal(painterFor(terminal, { NO_COLOR: "" })("x", "red"), "\u001B[31mx\u001B[0m");
  for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }]) assert.equal(painterFor(terminal, env)("x", "red"), "x");
  assert.equal(painterFor({}, {})("x", "red"), "x");
});

function crowded(): ReturnType<QueryStatistics["snapshot"]> {
  const statistics = new QueryStatistics();
  const words = Array.from({ length: 100 }, (_, index) => `container-${index}${"-long".repeat(index % 30)}`);
  statistics.addCounters(counted({}), START_MS - 1_000);
  for (const container of words)
    statistics.addQuery(aReport({ container, name: `${container}.example`, result: "forwarded" }), START_MS);
  statistics.addQuery({ container: "container-0", missed: 1_000_000 }, START_MS);
  statistics.addCounters(
    counted(Object.fromEntries(words.map((word) => [word, { queries: 1_000_000, failed: 3 }]))),
    START_MS,
  );
  return statistics.snapshot(START_MS);
}

function counted(
  containers: Readonly<Record<string, Readonly<Record<string, number>>>>,
): Parameters<QueryStatistics["addCounters"]>[0] {
  return { containers: Object.entries(containers).map(([container, counters]) => ({ container, counters })) };
}
