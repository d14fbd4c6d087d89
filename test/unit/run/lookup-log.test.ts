// Proves that a failed lookup is logged with its name and container, once for each name in a while, and that one container
// with many failing names does not hide those of another.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import type { Log } from "../../../src/base/log/log.ts";
import { RateLimitedLog } from "../../../src/base/log/rate-limited-log.ts";
import { Client } from "../../../src/query/client/client.ts";
import { QueryHistories } from "../../../src/query/history/query-histories.ts";
import { LookupLog } from "../../../src/run/lookup-log.ts";
import { TYPE, aName, aView } from "../../support/scripted/builders.ts";

class Rig {
  nowMs = 1;
  hasNames = true;
  readonly lines: Record<string, unknown>[] = [];
  readonly lookups: LookupLog;

  constructor() {
    const log = { warn: (fields: object, text: string) => this.lines.push({ ...fields, text }) } as unknown as Log;
    const now = (): number => this.nowMs;
    this.lookups = new LookupLog(new RateLimitedLog(log, now), () => this.hasNames, now);
    this.lookups.nameOf = (id) => (id === "api-id" ? "api" : undefined);
  }

  client(id: string): Client {
    const dial = (): number => assert.fail();
    return new Client(aView(), dial, undefined, new QueryHistories("full").open(id));
  }

  fail(client: Client, name: string): void {
    const labels = aName(name).toString("latin1").slice(0, -1);
    this.lookups.failed({ client, name: labels, type: TYPE.A, reason: "host(10.0.0.1): SERVFAIL" });
  }
}

test("a line has the name, type, container and result; repetitions are counted in the next one", () => {
  const rig = new Rig();
  const api = rig.client("api-id");
  for (let i = 0; i < 5; i++) rig.fail(api, "a.test");
  const line = {
    name: "a.test",
    type: "A",
    container: "api",
    result: "host(10.0.0.1): SERVFAIL",
    text: "lookup failed",
  };
  assert.deepEqual(rig.lines, [line]);
  rig.nowMs += LIMITS.logRepeatMs;
  rig.fail(api, "a.test");
  assert.deepEqual(rig.lines[1], { ...line, repeated: 4 });
});

test("a container has a bounded number of names in a while, and takes none from another", () => {
  const rig = new Rig();
  const noisy = rig.client("0123456789abcdef");
  for (let i = 0; i < 1_000; i++) rig.fail(noisy, `n${i}.test`);
  assert.equal(rig.lines.length, LIMITS.logLinesPerOwner);
  assert.equal(rig.lines[0]?.["container"], "0123456789ab", "a container without a known name");
  rig.fail(rig.client("api-id"), "a.test");
  assert.equal(rig.lines.at(-1)?.["name"], "a.test");
  rig.nowMs += LIMITS.logRepeatMs;
  rig.fail(noisy, "later.test");
  assert.equal(rig.lines.at(-1)?.["name"], "later.test");
  assert.equal(rig.lines.at(-1)?.["othersSuppressed"], 1_000 - LIMITS.logNames);
});

test("hundreds of noisy containers do not hide the failure of another", () => {
  const rig = new Rig();
  for (let i = 0; i < 300; i++) {
    const noisy = rig.client(`noisy${i}`);
    for (let n = 0; n < LIMITS.logNames; n++) rig.fail(noisy, `n${n}.test`);
  }
  rig.fail(rig.client("api-id"), "a.test");
  assert.equal(rig.lines.at(-1)?.["container"], "api");
});

test("a name is escaped and bounded", () => {
  const rig = new Rig();
  const api = rig.client("api-id");
  const label = `${String.fromCharCode(63)}${"\x1b".repeat(63)}`;
  rig.lookups.failed({ client: api, name: label.repeat(3), type: TYPE.A, reason: "SERVFAIL" });
  const name = String(rig.lines[0]?.["name"]);
  assert.match(name, /^(?:\\027)+/);
  assert.equal(name.length, LIMITS.logNameChars + "...".length);
});

test("hidden names are not logged", () => {
  const rig = new Rig();
  rig.hasNames = false;
  rig.fail(rig.client("api-id"), "a.test");
  assert.equal("name" in (rig.lines[0] ?? assert.fail()), false);
});
