// Proves the keys of top: each changes the screen as its help says, at 80 and 160 columns as captured.

import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";

import type { FailureReport } from "../../../src/api/failures.ts";
import type { Upstream } from "../../../src/api/upstreams.ts";
import { keysOf } from "../../../cmd/screen/screen.ts";
import { QueryStatistics, type Snapshot } from "../../../cmd/top/query-statistics.ts";
import { renderSnapshot } from "../../../cmd/top/render.ts";
import { type Inquiry, TopView } from "../../../cmd/top/view.ts";
import { useEnvironment } from "../support/environment.ts";
import { assertGolden } from "../support/golden.ts";

// Times are local.
useEnvironment({ TZ: "UTC" });
import { START_MS, aReport } from "../support/query-reports.ts";

const SIZE = { columns: 80, rows: 20 };
// Marks what is selected, because a capture has no colours.
const marked = (text: string, colour: string): string => (colour === "inverse" ? `>${text.slice(1)}` : text);
const ENTER = "\r";
const [UP, DOWN, RIGHT] = ["\u001B[A", "\u001B[B", "\u001B[C"];

class Reader {
  readonly inquiries: Inquiry[] = [];
  hasQuit = false;
  readonly view: TopView;
  #answer: (text: string) => void = () => undefined;

  constructor(snapshot: Snapshot = project()) {
    this.view = new TopView({
      ask: async (inquiry) => {
        this.inquiries.push(inquiry);
        return await new Promise((resolve) => (this.#answer = resolve));
      },
      onChange: () => undefined,
      onQuit: () => (this.hasQuit = true),
    });
    this.view.update(snapshot);
  }

  /** The screen after these keys. */
  type(...typed: string[]): string {
    for (const key of keysOf(Buffer.from(typed.join("")))) this.view.press(key);
    return this.screen();
  }

  screen(): string {
    const lines = this.view.frame(SIZE, marked);
    assert.ok(lines.length <= SIZE.rows);
    for (const line of lines) assert.ok(line.length <= SIZE.columns, line);
    return lines.map((line) => `${line.trimEnd()}\n`).join("");
  }

  async answer(text: string): Promise<string> {
    this.#answer(text);
    await turn();
    return this.screen();
  }
}

/** The first cells of the rows of a table. */
function rows(screen: string, table: "CONTAINER" | "NAME"): string[] {
  const lines = screen.split("\n");
  const head = lines.findIndex((line) => line.startsWith(`${table} `));
  const rest = lines.slice(head + 1);
  return rest.slice(0, rest.indexOf("")).map((line) => line.replace(/^>/, " ").trim().split(/\s+/)[0] ?? "");
}

for (const columns of [80, 160]) {
  test(`a snapshot with an outage at ${columns} columns is as captured`, () => {
    const lines = renderSnapshot(project(), { columns, rows: undefined }, (text) => text);
    assertGolden(`top.${columns}`, lines.map((line) => `${line.trimEnd()}\n`).join(""));
    for (const line of lines) assert.ok(line.length <= columns, line);
  });
}

test("a live screen, its help and its filter are as captured", () => {
  const reader = new Reader();
  const screens = [
    ["at first", reader.screen()],
    ["sorted by failures, the first name selected", reader.type("s", RIGHT)],
    ["filtered", reader.type("/DB")],
    ["paused, only failures", reader.type(ENTER, "f", " ")],
    ["help", reader.type("?")],
  ];
  assertGolden("top-keys.80", screens.map(([title, screen]) => `--- ${title}\n${screen}`).join("\n"));
});

test("s cycles through the orders; failing names of containers come first when sorted by failures", () => {
  const reader = new Reader();
  assert.deepEqual(rows(reader.screen(), "NAME"), ["www.example.org", "nx-typo.example.com", "db", "api.example.org"]);
  assert.deepEqual(rows(reader.type("s"), "NAME").slice(0, 2), ["db", "api.example.org"]);
  assert.deepEqual(rows(reader.type("s"), "NAME").slice(0, 2), ["nx-typo.example.com", "db"]);
  assert.deepEqual(rows(reader.type("s"), "CONTAINER")[0], "shop-worker-1");
  assert.deepEqual(rows(reader.type("s"), "NAME")[0], "www.example.org");
  assert.deepEqual(rows(reader.type("s"), "NAME")[0], "api.example.org");
  assert.match(reader.screen(), /sort: name/);
  assert.match(reader.type("s"), /sort: queries/);
});

test("/ filters while typing; enter keeps the filter, escape drops it, and q is a letter meanwhile", () => {
  const reader = new Reader();
  assert.deepEqual(rows(reader.type("/", "exampleq"), "NAME"), []);
  assert.ok(!reader.hasQuit);
  assert.deepEqual(rows(reader.type("\u007F", ".COM"), "NAME"), ["nx-typo.example.com"]);
  assert.match(reader.type(ENTER), /filter: example\.com/);
  assert.doesNotMatch(reader.type("/", "\u001B"), /filter:/);
  assert.equal(rows(reader.screen(), "NAME").length, 4);
});

test("f leaves only rows with failures, and again all", () => {
  const reader = new Reader();
  assert.deepEqual(rows(reader.type("f"), "NAME"), ["db", "api.example.org"]);
  assert.deepEqual(rows(reader.screen(), "CONTAINER"), ["shop-worker-1", "shop-web-1"]);
  assert.equal(rows(reader.type("f"), "NAME").length, 4);
});

test("a paused screen stays, and shows the present when it goes on", () => {
  const reader = new Reader();
  const before = reader.type("p");
  assert.match(before, /^PAUSED/m);
  reader.view.update(new QueryStatistics().snapshot(START_MS + 60_000));
  assert.equal(reader.screen(), before);
  reader.type(" ");
  reader.view.update(new QueryStatistics().snapshot(START_MS + 60_000));
  assert.match(reader.screen(), /^dns11 top 12:01:00 {2}0 containers/);
});

test("the selection follows its row through other orders, and is visible in a long table", () => {
  const reader = new Reader();
  reader.type(RIGHT, DOWN, DOWN);
  assert.match(reader.screen(), /^>b /m);
  reader.type("s");
  assert.match(reader.screen(), /^>b /m);
  const crowd = new QueryStatistics();
  for (let i = 0; i < 50; i++) crowd.addQuery(aReport({ container: `c${String(i).padStart(2, "0")}` }), START_MS);
  const long = new Reader(crowd.snapshot(START_MS));
  assert.match(long.type(DOWN.repeat(50)), /^>49 /m);
  assert.match(long.type(UP.repeat(60)), /^>00 /m);
});

test("enter explains a name in a container that fails, and shows the failures of a container", async () => {
  const reader = new Reader();
  assert.match(reader.type("s", RIGHT, ENTER), /^Asking dns11 /);
  assert.deepEqual(reader.inquiries, [{ kind: "name", name: "db", container: "shop-web-1", type: "A" }]);
  const explained = await reader.answer(`db (A) in shop-web-1: NXDOMAIN\n  why       ${"long ".repeat(30)}\n`);
  assert.match(explained, /^db \(A\) in shop-web-1: NXDOMAIN\n {2}why [^]*\nPress any key to return\.\n$/);
  assert.match(reader.type("x"), /^dns11 top/);
  reader.type(RIGHT, ENTER);
  assert.deepEqual(reader.inquiries[1], { kind: "container", container: "shop-web-1" });
  // An answer that comes too late changes nothing.
  reader.type("x");
  assert.match(await reader.answer("late"), /^dns11 top/);
});

test("q and Ctrl-C quit, the latter also from the filter and the help", () => {
  for (const typed of ["q", "Q", "\u0003", "/\u0003", "?\u0003"]) {
    const reader = new Reader();
    reader.type(typed);
    assert.ok(reader.hasQuit, JSON.stringify(typed));
  }
});

test("keys are told apart when several arrive at once; unknown sequences and control characters are dropped", () => {
  assert.deepEqual(keysOf(Buffer.from("\u001B[As\u001BOB\t\u001B[15~é\u0001\u009Bx")), [
    "up",
    "s",
    "down",
    "right",
    "é",
    "x",
  ]);
});

/** A small project: db fails in web, the servers are down, and the worker gets expired answers. */
function project(): Snapshot {
  const statistics = new QueryStatistics();
  const add = (times: number, parts: Parameters<typeof aReport>[0]): void => {
    for (let i = 0; i < times; i++) statistics.addQuery(aReport(parts), START_MS);
  };
  const [web, worker, api] = [{ container: "shop-web-1" }, { container: "shop-worker-1" }, { container: "shop-api-1" }];
  add(12, { ...web, name: "db", rcode: "NXDOMAIN", result: "cached", answers: 0 });
  add(30, { ...web, name: "nx-typo.example.com", rcode: "NXDOMAIN", result: "forwarded", ms: 3, answers: 0 });
  add(40, { ...worker, name: "www.example.org", result: "stale" });
  add(5, { ...worker, name: "api.example.org", rcode: "SERVFAIL", result: "failed", ms: 4000, answers: 0 });
  add(8, { ...api, name: "www.example.org", result: "forwarded", ms: 21 });
  statistics.setFailures({ failures: [aFailure()], misleading: [], unwatched: [], omitted: 0 });
  statistics.setUpstreams({ tracksServers: true, upstreams: ["10.99.0.1", "10.99.0.2", "10.99.0.3"].map(aDownServer) });
  return statistics.snapshot(START_MS);
}

function aFailure(): FailureReport {
  const time = new Date(START_MS).toISOString();
  return {
    container: "shop-web-1",
    containerId: "w",
    isRunning: true,
    project: "shop",
    service: "web",
    name: "db",
    type: "A",
    result: "NXDOMAIN",
    count: 12,
    perMinute: 12,
    first: time,
    last: time,
    lastSuccess: null,
    isContainerName: true,
    cause: null,
  };
}

function aDownServer(address: string): Upstream {
  return {
    server: `host(${address})`,
    address,
    port: 53,
    from: "host",
    container: null,
    isBackup: false,
    uses: [],
    state: "down",
    since: "2026-01-01T08:11:00.000Z",
    reason: "connection refused",
    rttMs: null,
    deviationMs: null,
    counters: null,
    edns: null,
    isLooping: null,
    loopsUntil: null,
  };
}
