/**
 * The names that a container was answered an address with: several for one address, bounded, and none where they are hidden.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { AnsweredNames, AnsweredTables } from "../../../src/features/egress/egress.ts";
import { EGRESS_LIMITS } from "../../../src/features/egress/limits.ts";
import { Outcome, STAGE } from "../../../src/query/record/outcome.ts";
import { aQuery, aRecord, aReplyTo } from "../../support/scripted/builders.ts";

const LATER = Number.MAX_SAFE_INTEGER;

function anAnswer(name: string, addresses: readonly (readonly number[])[], rcode = 0): Outcome {
  const size = addresses[0]?.length ?? 4;
  const type = size === 4 ? 1 : 28;
  const query = aQuery({ name, type });
  const records = addresses.map((each) => aRecord({ type, data: Buffer.from(each) }));
  const outcome = new Outcome();
  const reply = aReplyTo(query, rcode, records);
  outcome.complete({ query, questionEnd: query.length, type }, reply, "forwarded", undefined);
  assert.equal(outcome.stage, STAGE.completed);
  return outcome;
}

function someNames(): AnsweredNames {
  return new AnsweredNames({ isOn: true, hasNames: true });
}

test("all names of an address are kept, in the order of their last answers, in lower case", () => {
  const names = someNames();
  names.note(anAnswer("a.test", [[192, 0, 2, 1]]));
  names.note(
    anAnswer("B.Test", [
      [192, 0, 2, 2],
      [192, 0, 2, 1],
    ]),
  );
  assert.deepEqual(names.of("192.0.2.1", LATER), ["a.test", "b.test"]);
  assert.deepEqual(names.of("192.0.2.2", LATER), ["b.test"]);
  assert.deepEqual(names.of("192.0.2.3", LATER), []);
});

test("IPv6 addresses are found by their canonical text; failed answers count for nothing", () => {
  const names = someNames();
  names.note(anAnswer("six.test", [[0x20, 1, 0xd, 0xb8, ...Array.from({ length: 11 }, () => 0), 7]]));
  names.note(anAnswer("no.test", [[192, 0, 2, 9]], 3));
  assert.deepEqual(names.of("2001:db8::7", LATER), ["six.test"]);
  assert.deepEqual(names.of("192.0.2.9", LATER), []);
});

test("a connection does not get a name that was asked afterwards", () => {
  const names = someNames();
  names.note(anAnswer("a.test", [[192, 0, 2, 1]]));
  assert.deepEqual(names.of("192.0.2.1", Date.now() - 60_000), []);
  assert.deepEqual(names.of("192.0.2.1", Date.now()), ["a.test"]);
});

test("addresses and names of each are limited; one that was forgotten is noted again by the same answer", () => {
  const names = someNames();
  const first = anAnswer("first.test", [[10, 0, 0, 1]]);
  names.note(first);
  for (let index = 0; index < EGRESS_LIMITS.addresses; index++)
    names.note(anAnswer("more.test", [[10, 1, index >> 8, index & 0xff]]));
  assert.deepEqual(names.of("10.0.0.1", LATER), []);
  names.note(first);
  assert.deepEqual(names.of("10.0.0.1", LATER), ["first.test"]);
  const many = Array.from({ length: EGRESS_LIMITS.names + 3 }, (_, index) => `n${index}.test`);
  for (const name of many) names.note(anAnswer(name, [[10, 9, 9, 9]]));
  assert.deepEqual(names.of("10.9.9.9", LATER), many.slice(-EGRESS_LIMITS.names));
});

test("nothing is noted while it is off or names are hidden, and what was noted is dropped then", () => {
  let nowMs = 0;
  const tables = new AnsweredTables(() => nowMs);
  const names = tables.open("one");
  const answer = anAnswer("a.test", [[192, 0, 2, 1]]);
  names.note(answer);
  assert.deepEqual(tables.of("one", "192.0.2.1", LATER), []);
  tables.configure(true, "full");
  names.note(answer);
  assert.deepEqual(tables.of("one", "192.0.2.1", LATER), ["a.test"]);
  assert.deepEqual(tables.of("two", "192.0.2.1", LATER), []);
  tables.configure(true, "hidden");
  names.note(answer);
  tables.configure(true, "full");
  assert.deepEqual(tables.of("one", "192.0.2.1", LATER), []);
  names.note(answer);
  tables.close("one");
  nowMs += EGRESS_LIMITS.lingerMs - 1;
  tables.open("two");
  assert.deepEqual(tables.of("one", "192.0.2.1", LATER), ["a.test"], "the last connections are read after the end");
  nowMs += 1;
  tables.open("three");
  assert.deepEqual(tables.of("one", "192.0.2.1", LATER), []);
});
