// Proves that an answer to an alias is recorded as what its client asked, with what the judge and a policy say of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Outcome } from "../../../../src/query/record/outcome.ts";
import { TYPE, aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { QUESTION_FIXED_BYTES } from "../../../../src/base/dns/record.ts";

function asked(name: string): { query: Buffer; questionEnd: number; type: number } {
  const query = aQuery({ name });
  return { query, questionEnd: query.length, type: TYPE.A };
}

const REFUSAL = { text: "policy p: nothing allows it", isEnforced: false };

for (const alias of [undefined, asked("alias.test")])
  test(`a deferred query ${alias === undefined ? "without" : "with"} an alias`, () => {
    const target = asked("target.example.test");
    const outcome = new Outcome();
    const { query, questionEnd } = alias ?? target;
    const deferred = { ...target, alias, rule: "delay 5ms", refusal: REFUSAL, isOwn: true };
    outcome.complete(deferred, aReplyTo(query, 0, []), "forwarded", undefined);
    assert.equal(outcome.question, query);
    assert.equal(outcome.nameEnd, questionEnd - QUESTION_FIXED_BYTES);
    assert.deepEqual([outcome.rule, outcome.refusal, outcome.isOwn], ["delay 5ms", REFUSAL, true]);
    outcome.complete(alias ?? target, aReplyTo(query, 0, []), "forwarded", undefined);
    assert.deepEqual([outcome.rule, outcome.refusal, outcome.isOwn], [undefined, undefined, false]);
  });
