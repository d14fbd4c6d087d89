/**
 * The log of all queries: a line each, within its limit, and with nothing in it that a terminal would obey.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import type { Log } from "../../../src/base/log/log.ts";
import { QueryReader } from "../../../src/control/history/query-reader.ts";
import { LINES_MAX, QueryLog } from "../../../src/features/query-log/query-log.ts";
import { QueryHistories } from "../../../src/query/history/query-histories.ts";
import type { QueryHistory } from "../../../src/query/history/query-history.ts";
import { TYPE, aName, aQuery, aReplyTo } from "../../support/scripted/builders.ts";
import { anOutcome } from "../../unit/support/outcome.ts";

test("the query log has a line for each query, and the number of omitted ones", () => {
  const histories = new QueryHistories("full");
  const reader = new QueryReader(histories, () => "web");
  const history = histories.open("web-id");
  const lines: [Record<string, unknown>, string][] = [];
  const log = { info: (about: Record<string, unknown>, what: string) => lines.push([about, what]) } as unknown as Log;
  const queryLog = new QueryLog(reader, log);
  note(history, "before");
  queryLog.setOn(true);
  note(history, "\u001B[2J", 3);
  queryLog.stop();
  const [[about, what] = assert.fail(), ...others] = lines;
  assert.deepEqual(others, []);
  assert.equal(what, "query");
  const { received, ...rest } = about;
  assert.match(String(received), /^\d{4}-\d\d-\d\dT/);
  assert.deepEqual(rest, {
    container: "web",
    name: "\\027[2J",
    type: "A",
    rcode: "NXDOMAIN",
    answers: 0,
    transport: "udp",
    result: "local",
    source: "rule",
    ms: 0,
  });
  lines.length = 0;
  queryLog.setOn(true);
  for (let i = 0; i < 2_000; i++) note(history, `n${i}`);
  queryLog.stop();
  assert.ok(lines.length <= LINES_MAX + 1);
  const logged = lines.filter(([, word]) => word === "query").length;
  assert.deepEqual(lines.at(-1), [{ omitted: 2_000 - logged }, "queries omitted from the log"]);
});

test("a log of queries that are not kept is a conflict; one without names is none", () => {
  const merge = (names: "off" | "hidden"): unknown =>
    mergeSettings([
      { source: "flag", values: { "queries.log": true, "queries.names": names }, where: (key) => `--${key}` },
    ]);
  assert.throws(
    () => merge("off"),
    (error) =>
      error instanceof BadSettings &&
      error.lines.length === 1 &&
      error.lines[0]?.startsWith("--queries.log: has no effect with queries.names: off") === true,
  );
  merge("hidden");
});

function note(history: QueryHistory, name: string, rcode = 0): void {
  const reply = aReplyTo(aQuery({ name, type: TYPE.A }), rcode);
  history.tick();
  history.note(anOutcome({ reply, nameEnd: 12 + aName(name).length }));
}
