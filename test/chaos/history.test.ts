// Proves that the checker of histories finds each kind of wrong answer, and nothing in a right history.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Answer, type History, type Served, ZONES, checkHistory, countAddress, ownAddress } from "./history.ts";

const TOLERANCE_MS = 1_000;
const OWN = `one${ZONES.own}`;
const COUNTED = `now${ZONES.counted}`;

function answer(parts: Partial<Answer>): Answer {
  return {
    client: "c0",
    name: OWN,
    startedMs: 5_000,
    endedMs: 5_010,
    addresses: [],
    ttl: 5,
    isForeign: false,
    ...parts,
  };
}

function served(parts: Partial<Served>): Served {
  return { server: 1, name: OWN, from: "10.53.0.8", atMs: 5_001, said: ownAddress(OWN, 1), ...parts };
}

function found(parts: Partial<History>): readonly string[] {
  const nothing = { answers: [], served: [], ended: new Map(), flushes: [], unable: [], firstDown: [] };
  return checkHistory({ ...nothing, ...parts }, TOLERANCE_MS).map(({ what }) => what);
}

test("a right history has nothing", () => {
  const answers = [answer({ addresses: [ownAddress(OWN, 1)] }), answer({ name: "gone" })];
  assert.deepEqual(found({ answers, served: [served({})], ended: new Map([["gone", 1_000]]) }), []);
});

test("a container that has ended is found, but for the time in which dns11 could not know, and for Docker's own answers", () => {
  const late = answer({ name: "gone", addresses: ["10.88.1.9"] });
  const ended = new Map([["gone", 3_000]]);
  assert.match(found({ answers: [late], ended })[0] ?? "", /gone had ended 2000 ms before/);
  assert.deepEqual(found({ answers: [late], ended, unable: [{ fromMs: 3_000, toMs: 4_500 }] }), []);
  assert.deepEqual(found({ answers: [{ ...late, ttl: 600 }], ended }), []);
  assert.deepEqual(found({ answers: [{ ...late, addresses: ["192.0.2.2"] }], ended }), []);
});

test("a name at a server that is to be forwarded to nobody is found, unless Docker's resolver has asked", () => {
  const denied = served({ name: `x${ZONES.denied}` });
  assert.match(found({ served: [denied] })[0] ?? "", /is to be forwarded to nobody/);
  assert.deepEqual(found({ served: [{ ...denied, from: "10.88.1.10" }] }), []);
});

test("an answer from before a flush is found", () => {
  const before = served({ name: COUNTED, atMs: 4_000, said: countAddress(300) });
  const old = answer({ name: COUNTED, addresses: [countAddress(300)] });
  assert.match(
    found({ answers: [old], served: [before], flushes: [{ fromMs: 4_400, toMs: 4_500 }] })[0] ?? "",
    /from before the cache was flushed/,
  );
  assert.deepEqual(found({ answers: [old], served: [before], flushes: [{ fromMs: 4_900, toMs: 5_001 }] }), []);
  assert.deepEqual(
    found({
      answers: [answer({ name: COUNTED, addresses: [countAddress(301)] })],
      served: [before],
      flushes: [{ fromMs: 4_400, toMs: 4_500 }],
    }),
    [],
  );
});

test("another client's reply is found, by its question and by its address", () => {
  assert.match(found({ answers: [answer({ isForeign: true })] })[0] ?? "", /is to another query/);
  // It came from a server, by Docker's resolver while dns11 did not run.
  assert.deepEqual(found({ answers: [answer({ isForeign: true, addresses: ["198.51.100.66"] })] }), []);
  assert.match(
    found({ answers: [answer({ addresses: [ownAddress(`two${ZONES.own}`, 1)] })] })[0] ?? "",
    /another name's/,
  );
});

test("the second server's answer is found where the first had answered and was not down", () => {
  const second = answer({ addresses: [ownAddress(OWN, 2)], endedMs: 6_000 });
  assert.match(found({ answers: [second], served: [served({})] })[0] ?? "", /what the second server says/);
  assert.deepEqual(found({ answers: [second], served: [served({})], firstDown: [{ fromMs: 4_000, toMs: 7_000 }] }), []);
  assert.deepEqual(found({ answers: [second] }), []);
});
