// Proves that what a container was answered lately has a bound, and that what is repeated stays within it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RecentAnswers } from "../../../../src/features/policy/gate/recent-answers.ts";
import { POLICY_LIMITS } from "../../../../src/features/policy/model/limits.ts";

const REPLY = Buffer.alloc(1_000);

test("answers take so much memory, and those that are repeated least recently are dropped", () => {
  const recent = new RecentAnswers();
  const count = 1_000;
  recent.keep("often", REPLY, false, 0);
  for (let index = 0; index < count; index++) {
    recent.keep(`n${index}`, REPLY, false, 0);
    assert.notEqual(recent.find("often", 0), undefined);
  }
  const kept = Array.from({ length: count }, (_, index) => recent.find(`n${index}`, 0)).filter(Boolean).length;
  assert.ok(kept > 50 && kept * REPLY.length < POLICY_LIMITS.recentBytes, `${kept} are kept`);
  assert.notEqual(recent.find(`n${count - 1}`, 0), undefined);
});

test("an answer that is too long for that is not kept, and takes nothing", () => {
  const recent = new RecentAnswers();
  recent.keep("long", Buffer.alloc(POLICY_LIMITS.recentBytes), false, 0);
  assert.equal(recent.find("long", 0), undefined);
  for (let index = 0; index < 50; index++) recent.keep(`n${index}`, REPLY, false, 0);
  assert.notEqual(recent.find("n0", 0), undefined);
});

test("an answer that is kept stays as it is, and a failure for less time", () => {
  const recent = new RecentAnswers();
  recent.keep("a", REPLY, false, 0);
  recent.keep("a", Buffer.alloc(5), false, POLICY_LIMITS.recentMs - 1);
  assert.equal(recent.find("a", POLICY_LIMITS.recentMs - 1)?.reply.length, REPLY.length);
  assert.equal(recent.find("a", POLICY_LIMITS.recentMs), undefined);
  recent.keep("b", REPLY, true, 0);
  assert.equal(recent.find("b", POLICY_LIMITS.recentFailureMs), undefined);
});
