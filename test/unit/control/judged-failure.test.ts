// Proves whether a failure still counts, and which cause is shown: that of its moment, or the one by what is known now.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Cause, CauseCode } from "../../../src/api/causes.ts";
import type { FailureRecord } from "../../../src/base/model/query-record.ts";
import { type Judged, judge } from "../../../src/control/failures/recorded-causes.ts";

const NOW = 1_000_000;
const MINUTE_MS = 60_000;

function of(code: CauseCode, isBreaking = false): Cause {
  return { code, sentence: code, fix: null, lastingFix: null, isBreaking };
}

interface Parts {
  readonly present: Cause | null;
  readonly recorded?: Cause | null;
  readonly agoMs?: number;
  readonly recordedMs?: number;
  readonly successMs?: number;
  readonly isRunning?: boolean;
}

function judged({
  present,
  recorded,
  agoMs = MINUTE_MS,
  recordedMs = NOW - agoMs + 1,
  successMs,
  isRunning = true,
}: Parts): (string | undefined)[] {
  const record: FailureRecord = {
    ...{ name: "db", type: 1, rcode: 3, count: 1, steps: 0, isStepLast: false, perMinute: 1, isLocal: true },
    ...{ firstMs: 0, lastMs: NOW - agoMs, successMs },
  };
  const known = recorded === undefined ? undefined : { cause: recorded, atMs: recordedMs };
  const { cause, earlier }: Judged = judge(record, { present, recorded: known, isRunning, nowMs: NOW });
  return [cause?.code, earlier];
}

test("what failed while servers were down says so when they are up again, and no longer counts", () => {
  const [down, broken] = [of("upstreams-down"), of("upstream-error")];
  assert.deepEqual(judged({ present: broken, recorded: down }), ["upstreams-down", "recovered"]);
  assert.deepEqual(judged({ present: down, recorded: down }), ["upstreams-down", undefined]);
  const again = { present: broken, recorded: down, agoMs: 10, recordedMs: NOW - 100 };
  assert.deepEqual(judged(again), ["upstream-error", undefined], "it has failed again");
  assert.deepEqual(judged({ ...again, recordedMs: NOW - 5 }), ["upstreams-down", "recovered"]);
  assert.deepEqual(judged({ present: down, recorded: broken, agoMs: 10 }), ["upstreams-down", undefined], "a guess");
});

test("what resolves by now is shown as it was", () => {
  const [now, before] = [of("resolves-now"), of("other-network", true)];
  assert.deepEqual(judged({ present: now, recorded: before, agoMs: 10 }), ["other-network", "recovered"]);
  assert.deepEqual(judged({ present: now }), ["resolves-now", "recovered"]);
});

test("what certainly fails now is shown as it is", () => {
  const [now, before] = [of("not-running", true), of("other-network", true)];
  assert.deepEqual(judged({ present: now, recorded: before }), ["not-running", undefined]);
  assert.deepEqual(judged({ present: of("does-not-exist"), recorded: of("unknown-name") }), [
    "unknown-name",
    undefined,
  ]);
});

test("the cause of a container that has ended, a name that has resolved since, and one that is idle", () => {
  const before = of("other-network", true);
  assert.deepEqual(judged({ present: null, recorded: before, isRunning: false }), ["other-network", "ended"]);
  assert.deepEqual(judged({ present: null, isRunning: false }), [undefined, "ended"]);
  assert.deepEqual(judged({ present: before, recorded: before, successMs: NOW }), ["other-network", "resolved"]);
  assert.deepEqual(judged({ present: before, recorded: before, successMs: 1 }), ["other-network", undefined]);
  assert.deepEqual(judged({ present: before, recorded: before, agoMs: 6 * MINUTE_MS }), ["other-network", "idle"]);
});
