// Proves which questions are popular: those that are asked twice in a turn, also among a thousand others, and no others.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RecentQuestions } from "../../../src/features/kernel-answers/kernel/brief-entries.ts";
import { Random } from "../../fuzz/random.ts";

const random = new Random(20_261_126, 0);
const numbers = (count: number): number[] => Array.from({ length: count }, () => random.below(2 ** 32));

test("a question is asked again the second time in a turn, until the kernel has its answer; each turn begins anew", () => {
  const asked = new RecentQuestions();
  const [question = 0] = numbers(1);
  assert.deepEqual(
    [1, 1, 1, 2, 2].map((turn) => asked.isAskedAgain(question, turn)),
    [false, true, true, false, true],
  );
  asked.settle();
  assert.deepEqual(
    [2, 2, 3, 3].map((turn) => asked.isAskedAgain(question, turn)),
    [false, false, false, true],
  );
});

test("a thousand questions that are asked one after the other are all known after some rounds", () => {
  const asked = new RecentQuestions();
  const questions = numbers(1_000);
  const popular = new Set<number>();
  for (let round = 0; round < 12; round++)
    for (const question of questions) if (asked.isAskedAgain(question, 7)) popular.add(question);
  assert.ok(popular.size > 980, String(popular.size));
});

test("a flood of new questions makes none of them popular, nor does it take more than 16 KiB", () => {
  const asked = new RecentQuestions();
  let again = 0;
  for (const question of numbers(100_000)) if (asked.isAskedAgain(question, 9)) again++;
  assert.ok(again < 10, String(again));
});

test("a few popular questions stay popular turn after turn, among the same few", () => {
  const asked = new RecentQuestions();
  const questions = numbers(20);
  const turns = Array.from({ length: 400 }, (_, turn) => {
    for (const question of questions) assert.ok(!asked.isAskedAgain(question, turn));
    return questions.filter((question) => asked.isAskedAgain(question, turn)).length;
  });
  // It forgets all when it grows, which is seldom.
  assert.ok(turns.filter((popular) => popular >= 18).length > 390);
});
