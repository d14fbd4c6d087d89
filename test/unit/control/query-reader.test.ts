// Proves that readers of the histories get each query once, in the order of time, from all runs of a container, and that missed
// queries are counted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { QueryReader } from "../../../src/control/history/query-reader.ts";
import type { MissedReport, QueryReport } from "../../../src/api/queries.ts";
import { QueryHistories } from "../../../src/query/history/query-histories.ts";
import type { QueryHistory } from "../../../src/query/history/query-history.ts";
import { countRounds } from "../../support/rig/rounds.ts";
import { TYPE, aName, aQuery, aReplyTo } from "../../support/scripted/builders.ts";
import { anOutcome } from "../support/outcome.ts";

test("queries of all containers come in the order of time, and only the last ones", async () => {
  const { histories, reader } = reading();
  const [web, db] = [histories.open("web-id"), histories.open("db-id")];
  for (let i = 0; i < 6; i++) note(i % 2 === 0 ? web : db, `n${i}`);
  assert.deepEqual(names(await reader.read({}, 100)), ["web n0", "db n1", "web n2", "db n3", "web n4", "db n5"]);
  assert.deepEqual(names(await reader.read({}, 3)), ["db n3", "web n4", "db n5"]);
  assert.deepEqual(names(await reader.read({}, 0)), []);
  assert.deepEqual(names(await reader.read({ containerId: "db-id" }, 2)), ["db n3", "db n5"]);
});

test("thousands of queries are reported in parts", async () => {
  const { histories, reader } = reading();
  const web = histories.open("web-id");
  for (let i = 0; i < 100; i++) note(web, `n${i}`);
  const some = await roundsOf(async () => await reader.read({}, 100));
  for (let each = 0; each < 60; each++) {
    const more = histories.open(`c${each}`);
    for (let i = 0; i < 160; i++) note(more, `n${i}`);
  }
  // A round for each history, and those of the reports.
  const all = await roundsOf(async () => assert.equal((await reader.read({}, 10_000)).queries.length, 9_700));
  assert.ok(all - 60 > some, `${all} rounds, and ${some} for 100 queries`);
});

test("times are wall-clock times", async () => {
  const { histories, reader } = reading();
  const beforeMs = Date.now();
  note(histories.open("web-id"), "web");
  const [query] = (await reader.read({}, 9)).queries;
  const atMs = Date.parse(query?.time ?? "");
  assert.ok(atMs >= beforeMs - 10 && atMs <= Date.now() + 10, `${query?.time} is between ${beforeMs} and now`);
});

test("names and codes are filtered", async () => {
  const { histories, reader } = reading();
  const history = histories.open("web-id");
  note(history, "a.Example", 0);
  note(history, "b.example", 3);
  note(history, "c.test", 3);
  assert.deepEqual(names(await reader.read({ name: "*.example" }, 9)), ["web a.Example", "web b.example"]);
  assert.deepEqual(names(await reader.read({ rcodes: new Set([3]) }, 9)), ["web b.example", "web c.test"]);
  assert.deepEqual(names(await reader.read({ name: "*.example", rcodes: new Set([3]) }, 9)), ["web b.example"]);
});

test("hidden names match no pattern", async () => {
  const { histories, reader } = reading("hidden");
  note(histories.open("web-id"), "a.example");
  assert.deepEqual(names(await reader.read({ name: "*" }, 9)), []);
  assert.deepEqual(names(await reader.read({}, 9)), ["web null"]);
});

test("since returns the newer queries and the number of missing ones", async () => {
  const { histories, reader } = reading();
  const history = histories.open("web-id");
  const first = await reader.read({ containerId: "web-id" }, 9);
  assert.deepEqual([first.queries.length, first.missed, first.last], [0, 0, history.lastSeq]);
  note(history, "n0");
  const second = await reader.read({ containerId: "web-id" }, 9, first.last ?? 0);
  assert.deepEqual([names(second), second.missed], [["web n0"], 0]);
  for (let i = 1; i <= 1_000; i++) note(history, `n${i}`);
  const third = await reader.read({ containerId: "web-id" }, 10_000, second.last ?? 0);
  assert.equal(third.queries.length + third.missed, 1_000);
  assert.equal(third.queries.at(-1)?.name, "n1000");
  assert.ok(third.missed > 0 && third.queries.length > 0);
  const fourth = await reader.read({ containerId: "web-id" }, 5, second.last ?? 0);
  assert.deepEqual([fourth.queries.length, fourth.missed], [5, 995]);
});

test("queries of an earlier run of a container come first, under its name", async () => {
  const { histories, reader, running } = reading();
  const before = histories.open("web-id");
  note(before, "early");
  const { last } = await reader.read({ containerId: "web-id" }, 9);
  note(before, "last-words");
  histories.name("web-id", "web");
  histories.close(before);
  running.delete("web-id");
  assert.deepEqual(names(await reader.read({ containerId: "web-id" }, 9, last ?? 0)), ["web last-words"]);
  assert.deepEqual(names(await reader.read({}, 9)), ["web early", "web last-words"]);
});

test("follow returns each query once: the last ones, then new ones, also of new containers", async () => {
  const { histories, reader } = reading();
  const web = histories.open("web-id");
  for (let i = 0; i < 5; i++) note(web, `n${i}`);
  const stop = new AbortController();
  const got: string[] = [];
  for await (const batch of reader.follow({}, 2, stop.signal)) {
    if (batch.length === 0) continue;
    got.push(...batch.map(text));
    if (got.length === 2) note(web, "n5");
    if (got.length === 3) note(histories.open("db-id"), "n6");
    if (got.length === 4) stop.abort();
  }
  assert.deepEqual(got, ["web n3", "web n4", "web n5", "db n6"]);
});

test("missed queries are reported for each container", () => {
  const { histories, reader } = reading();
  const [web, db] = [histories.open("web-id"), histories.open("db-id")];
  note(web, "before");
  const take = reader.watch();
  assert.deepEqual(take(), []);
  for (let i = 0; i < 1_000; i++) note(web, `n${i}`);
  note(db, "one");
  const reports = take();
  const missed = reports.filter((each): each is MissedReport => "missed" in each);
  assert.deepEqual(
    missed.map(({ container }) => container),
    ["web"],
  );
  const seen = reports.filter((each) => !("missed" in each)).map(text);
  assert.equal(seen.length - 1 + (missed[0]?.missed ?? 0), 1_000);
  assert.deepEqual(seen.slice(-2), ["web n999", "db one"]);
  assert.deepEqual(take(), []);
});

test("with many containers one poll takes a bounded number of queries, and soon some of each", () => {
  const { histories, reader } = reading();
  const opened = Array.from({ length: 200 }, (_, index) => histories.open(`id${index}`));
  const take = reader.watch();
  for (const history of opened) for (let i = 0; i < 20; i++) note(history, `n${i}`);
  const reports: ReturnType<typeof take> = [];
  for (let batch = take(); batch.length > 0; batch = take()) {
    assert.ok(batch.filter((each) => !("missed" in each)).length <= LIMITS.tailQueriesAtOnce);
    reports.push(...batch);
  }
  const seen = reports.filter((each) => !("missed" in each));
  // The last batch has fewer containers than there is room for, so it has all queries of each.
  const last = opened.length % (LIMITS.tailQueriesAtOnce / LIMITS.tailQueriesEach);
  assert.equal(seen.length, (opened.length - last) * LIMITS.tailQueriesEach + last * 20);
  const missed = reports.reduce((sum, each) => sum + ("missed" in each ? each.missed : 0), 0);
  assert.equal(seen.length + missed, opened.length * 20);
});

test("a container that always has new queries does not displace others", () => {
  const { histories, reader } = reading();
  const opened = Array.from({ length: 200 }, (_, index) => histories.open(`id${index}`));
  const take = reader.watch();
  for (const history of opened) note(history, "once");
  const seen = new Set<string>();
  for (let polls = 0; polls < 4; polls++) {
    for (const history of opened.slice(0, 100)) note(history, "again");
    for (const each of take()) seen.add(each.container);
  }
  assert.equal(seen.size, opened.length);
});

function reading(keeps: "full" | "hidden" = "full"): {
  readonly histories: QueryHistories;
  readonly reader: QueryReader;
  readonly running: Map<string, string>;
} {
  const histories = new QueryHistories(keeps);
  const running = new Map([
    ["web-id", "web"],
    ["db-id", "db"],
  ]);
  return { histories, running, reader: new QueryReader(histories, (id) => running.get(id)) };
}

function note(history: QueryHistory, name: string, rcode = 0): void {
  const reply = aReplyTo(aQuery({ name, type: TYPE.A }), rcode);
  // Each query has its own time, as with a clock that is fine enough.
  const before = performance.now();
  while (performance.now() - before < 0.002);
  history.tick();
  history.note(anOutcome({ reply, nameEnd: 12 + aName(name).length }));
}

function text(each: QueryReport | MissedReport): string {
  return "missed" in each ? `${each.container} missed ${each.missed}` : `${each.container} ${each.name}`;
}

function names({ queries }: { readonly queries: readonly QueryReport[] }): string[] {
  return queries.map(text);
}

async function roundsOf(work: () => Promise<unknown>): Promise<number> {
  using rounds = countRounds();
  await work();
  return rounds.count;
}
