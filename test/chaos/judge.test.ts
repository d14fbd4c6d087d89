/** The verdict of a run: it must detect what the run is meant to detect, and excuse what is unavoidable. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { EVERY_MS, type ProbeResult, type ProbeMode, PROBE_MODES } from "./prober.ts";
import { type AnswerSpans, type AnswerSpan, type Recording, judge } from "./judge.ts";

const TOLERANCE_MS = 1_000;
const MINE = "10.88.1.10";

function answered(mode: ProbeMode, startedMs: number, ttl = 5, address = MINE): ProbeResult {
  return { mode, startedMs, tookMs: 1, outcome: "answer", addresses: [address], ttl };
}

/** Probes in every mode all the time, answered unless `how` returns something else. */
function probing(fromMs: number, toMs: number, how = answered): ProbeResult[] {
  return PROBE_MODES.flatMap((mode) => {
    const probes: ProbeResult[] = [];
    for (let ms = fromMs; ms < toMs; ms += EVERY_MS[mode]) probes.push(how(mode, ms));
    return probes;
  });
}

function always(answerSpans: readonly AnswerSpan[]): AnswerSpans {
  return { fresh: answerSpans, reused: answerSpans, tcp: answerSpans };
}

function record(probes: readonly ProbeResult[], change: Partial<Recording> = {}): Recording {
  return {
    container: "c0",
    probes,
    stalls: [],
    answerSpans: always([{ fromMs: 0, toMs: 10_000, excuse: undefined }]),
    addresses: [{ address: MINE, fromMs: 0, toMs: Infinity }],
    ...change,
  };
}

function whatIn(one: Recording): string[] {
  return judge([one], TOLERANCE_MS).violations.map(({ what }) => what.replaceAll(/\d{3,}/g, "N"));
}

function refused(mode: ProbeMode, startedMs: number): ProbeResult {
  return { mode, startedMs, tookMs: 1, outcome: "ECONNREFUSED" };
}

test("a container that always gets answers has no violation, and the answers are attributed to dns11 or Docker", () => {
  const { violations, expected, longestGapMs } = judge(
    [record([...probing(0, 5_000), ...probing(5_000, 10_000, (mode, ms) => answered(mode, ms, 600))])],
    TOLERANCE_MS,
  );
  assert.deepEqual(violations, []);
  assert.equal(expected.byDns11, expected.byDocker);
  assert.equal(expected.probes, expected.byDns11 + expected.byDocker);
  assert.ok(longestGapMs < 10);
});

test("more than a second without an answer is a violation, in the probe mode that had none", () => {
  const gap = [...probing(0, 4_000), ...probing(4_000, 5_500, refused), ...probing(5_500, 10_000)];
  assert.deepEqual(
    whatIn(record(gap)),
    PROBE_MODES.map((mode) => `no correct answer for N ms (${mode})`),
  );
  const reused = gap.filter(({ mode, outcome }) => mode === "reused" || outcome === "answer");
  assert.deepEqual(whatIn(record([...reused, ...probing(4_000, 5_500).filter(({ mode }) => mode !== "reused")])), [
    "no correct answer for N ms (reused)",
  ]);
});

test("missing probes count as missing answers, at the start and at the end of the span", () => {
  assert.equal(whatIn(record([])).length, PROBE_MODES.length);
  assert.equal(whatIn(record(probing(2_000, 10_000))).length, PROBE_MODES.length);
  assert.equal(whatIn(record(probing(0, 8_000))).length, PROBE_MODES.length);
});

test("late answers do not fill a gap", () => {
  const late = probing(0, 10_000, (mode, ms) => ({ ...answered(mode, ms), tookMs: ms < 5_000 ? 5_000 - ms : 1 }));
  assert.equal(whatIn(record(late)).length, PROBE_MODES.length);
});

test("a short loss is counted but is no violation", () => {
  const short = [...probing(0, 4_000), ...probing(4_000, 4_500, refused), ...probing(4_500, 10_000)];
  const { violations, lost } = judge([record(short)], TOLERANCE_MS);
  assert.deepEqual(violations, []);
  assert.deepEqual(Object.fromEntries(lost), {
    "fresh: ECONNREFUSED": 10,
    "reused: ECONNREFUSED": 5,
    "tcp: ECONNREFUSED": 2,
  });
});

test("time in which the prober was not scheduled is no gap", () => {
  const gap = [...probing(0, 4_000), ...probing(5_500, 10_000)];
  assert.deepEqual(whatIn(record(gap, { stalls: [{ fromMs: 4_100, toMs: 5_500 }] })), []);
  assert.equal(whatIn(record(gap, { stalls: [{ fromMs: 8_000, toMs: 9_900 }] })).length, PROBE_MODES.length);
});

test("time in which dns11 waited for a CPU is deducted from a gap, as far as they overlap", () => {
  const gap = [...probing(0, 4_000), ...probing(4_000, 5_500, refused), ...probing(5_500, 10_000)];
  const violations = (ms: number): number =>
    judge([record(gap)], TOLERANCE_MS, [{ fromMs: 4_500, toMs: 5_500, ms }]).violations.length;
  assert.equal(violations(900), 0);
  assert.equal(violations(100), PROBE_MODES.length);
  assert.equal(judge([record(gap)], TOLERANCE_MS, [{ fromMs: 8_000, toMs: 9_000, ms: 900 }]).violations.length, 3);
});

test("excused time is counted by its reason, and a gap across it is measured on either side", () => {
  const answerSpans = [
    { fromMs: 0, toMs: 4_500, excuse: undefined },
    { fromMs: 4_500, toMs: 6_500, excuse: "both were down" },
    { fromMs: 6_500, toMs: 10_000, excuse: undefined },
  ];
  const silence = [...probing(0, 4_000), ...probing(4_000, 7_000, refused), ...probing(7_000, 10_000)];
  const { violations, excused } = judge([record(silence, { answerSpans: always(answerSpans) })], TOLERANCE_MS);
  assert.deepEqual(violations, []);
  const { seconds, probes, lost } = excused.get("both were down") ?? assert.fail();
  // Three clients (one per mode) for two seconds each.
  assert.deepEqual([seconds, probes], [6, lost]);
});

test("an excuse for one probe mode does not excuse the others", () => {
  const silent = probing(0, 10_000, (mode, ms) => (mode === "tcp" ? refused(mode, ms) : answered(mode, ms)));
  const expected = always([{ fromMs: 0, toMs: 10_000, excuse: undefined }]);
  const tcp = [{ fromMs: 0, toMs: 10_000, excuse: "no descriptors" }];
  assert.deepEqual(whatIn(record(silent)), ["no correct answer for N ms (tcp)"]);
  assert.deepEqual(whatIn(record(silent, { answerSpans: { ...expected, tcp } })), []);
  assert.equal(whatIn(record(silent, { answerSpans: { ...expected, fresh: tcp } })).length, 1);
});

test("a wrong answer is a violation in itself: another address, or NXDOMAIN", () => {
  const lie = answered("fresh", 5_001, 5, "192.0.2.1");
  assert.deepEqual(whatIn(record([...probing(0, 10_000), lie])), [
    "wrong answer for its own name: fresh: wrong address N.0.2.1 (TTL 5)",
  ]);
  const denial = { ...lie, outcome: "NXDOMAIN", addresses: [] };
  assert.deepEqual(whatIn(record([...probing(0, 10_000), denial])), ["wrong answer for its own name: fresh: NXDOMAIN"]);
});

test("an address that the container no longer has may be answered for a moment, but not for ever", () => {
  const addresses = [
    { address: MINE, fromMs: 0, toMs: Infinity },
    { address: "10.88.2.10", fromMs: 3_000, toMs: 5_000 },
  ];
  const second = (ms: number): ProbeResult => answered("fresh", ms, 5, "10.88.2.10");
  assert.deepEqual(whatIn(record([...probing(0, 10_000), second(4_001), second(5_501)], { addresses })), []);
  assert.equal(whatIn(record([...probing(0, 10_000), second(2_001)], { addresses })).length, 1);
  assert.equal(whatIn(record([...probing(0, 10_000), second(6_501)], { addresses })).length, 1);
});
