// Proves that no message breaks the query path: properties over messages of every shape, and a short run of the fuzzer.
// fuzz-main is the long run.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { aQuery, aRecord, anOpt } from "../support/scripted/builders.ts";
import { AnswerCheck, AskedCheck, RelayCheck, ReplyCheck, checkStream } from "./check.ts";
import { HOSTILE, HUGE, HUGE_REPLIES, QUERIES, REPLIES } from "./corpus.ts";
import { Random } from "./random.ts";
import { fuzz } from "./run.ts";

const SEED = 20_250_101;
const INPUTS = 80_000;

const checks = (["strict", "default"] as const).flatMap((mode) =>
  [false, true].map((isStream) => ({
    what: `${mode} over ${isStream ? "TCP" : "UDP"}`,
    check: new AnswerCheck(mode, isStream, SEED),
  })),
);

const label = fc.oneof(fc.constantFrom("web", "ONE", "one", "many", "arpa", "in-addr"), fc.string({ maxLength: 70 }));
const bytes = fc.uint8Array({ maxLength: 40 }).map((octets) => Buffer.from(octets));
const record = fc
  .record({ owner: fc.array(label, { maxLength: 3 }), type: fc.nat({ max: 300 }), data: bytes })
  .map(({ owner, type, data }) => aRecord({ owner: owner.join("."), type, data }));
const opt = fc
  .record({
    udpSize: fc.nat({ max: 65_535 }),
    version: fc.nat({ max: 2 }),
    options: fc.array(fc.tuple(fc.nat({ max: 16 }), bytes), { maxLength: 3 }),
  })
  .map((parts) => anOpt(parts));
const records = fc.array(fc.oneof(record, opt), { maxLength: 3 });
// Valid or almost: what a careless sender makes, as opposed to mutations.
const query = fc
  .record({
    id: fc.nat({ max: 65_535 }),
    flags: fc.nat({ max: 65_535 }),
    name: fc.array(label, { maxLength: 6 }).map((labels) => labels.join(".")),
    type: fc.constantFrom(1, 12, 15, 16, 28, 41, 255, 65_535),
    class: fc.constantFrom(1, 3, 255),
    answers: records,
    authorities: records,
    additionals: records,
    tail: bytes,
  })
  .map((parts) => aQuery({ ...parts, flags: parts.flags & (parts.flags % 8 === 0 ? 0xffff : 0x07ff) }));

for (const { what, check } of checks) {
  test(`${what}: valid and hostile messages are answered by the rules`, () => {
    for (const message of [...QUERIES, ...HOSTILE, ...HUGE]) check.run(check.cut(message));
  });

  test(`${what}: any octets are answered by the rules`, () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), (octets) => check.run(check.cut(Buffer.from(octets)))));
  });

  test(`${what}: queries of any composition are answered by the rules`, () => {
    fc.assert(
      fc.property(query, (message) => check.run(check.cut(message))),
      { numRuns: 500 },
    );
  });
}

for (const check of [new ReplyCheck(), new RelayCheck(), new AskedCheck()]) {
  test(`any octets either parse as a reply or do not, without side effects (${check.constructor.name})`, () => {
    for (const reply of [...REPLIES, ...HUGE_REPLIES, ...HOSTILE, ...QUERIES]) check.run(reply);
    fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), (octets) => check.run(Buffer.from(octets))));
  });
}

test("messages of any length come out of a stream unchanged", () => {
  checkStream([...HUGE, ...QUERIES, ...HOSTILE], new Random(SEED, 0));
});

test(`${INPUTS} mutated messages are answered by the rules`, () => {
  const { violation, outcomes } = fuzz({ seed: SEED, inputs: INPUTS });
  assert.equal(
    violation && `${violation.what} ${violation.index}: ${String(violation.error)}\n${violation.hex}`,
    undefined,
  );
  // A run without any answers would prove little.
  for (const [outcome, count] of Object.entries(outcomes)) assert.ok(count > INPUTS / 200, `${outcome}: ${count}`);
});
