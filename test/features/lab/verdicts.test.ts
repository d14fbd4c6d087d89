// What the rules of a client cost: states are bounded whatever it asks, and a rule that has never matched costs nothing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { wireLabels } from "../../../src/base/dns/name.ts";
import { StoredName } from "../../../src/base/model/label-table.ts";
import { readPattern } from "../../../src/base/model/name-pattern.ts";
import { type Rule, RuleTally } from "../../../src/features/lab/rules.ts";
import { RuleSet } from "../../../src/features/lab/rules.ts";
import { Verdicts } from "../../../src/features/lab/verdicts.ts";

let ids = 0;

function aRule(pattern: string, limits: Rule["limits"] = {}): Rule {
  return {
    id: (ids += 1),
    pattern: readPattern(pattern),
    types: undefined,
    over: undefined,
    action: { kind: "drop" },
    limits,
    text: "drop",
    tally: new RuleTally(),
  };
}

function judgedBy(...rules: readonly Rule[]): (name: string, type?: number) => boolean {
  const set = new RuleSet();
  for (const rule of rules) set.add(rule);
  const verdicts = new Verdicts("a", { fault: 0, answer: 0, deny: 0 });
  verdicts.sets.add(set);
  return (name, type = 1) => {
    const labels = wireLabels(name);
    assert.ok(labels);
    const question = Object.assign(new StoredName(labels), { type });
    return verdicts.judge(question, false, false) !== undefined;
  };
}

test("names are told apart, and beyond the bound the oldest begins anew", () => {
  const rule = aRule("**", { count: 1, isPerName: true });
  const judge = judgedBy(rule);
  assert.deepEqual([judge("a.test"), judge("b.test"), judge("a.test")], [true, true, false]);
  for (let i = 0; i < 2_000; i += 1) judge(`n${i}.test`);
  assert.equal(judge("n1999.test"), false);
  assert.equal(judge("a.test"), true);
  assert.equal(rule.tally.matched, 2_005);
});

test("rules share the bound of a client: one whose states are used up remembers nothing", () => {
  const second = aRule("**", { count: 1, isPerName: true });
  // The newer one is judged first.
  const first = aRule("**", { probability: 0, isPerName: true });
  const judge = judgedBy(second, first);
  for (let i = 0; i < 1_500; i += 1) judge(`n${i}.test`);
  assert.equal(first.tally.matched, 1_500);
  assert.equal(first.tally.applied, 0);
  assert.deepEqual([second.tally.matched, second.tally.applied], [1_500, 1_500]);
});

test("a rule that no query has matched counts no container", () => {
  const rules = Array.from({ length: 1_000 }, (_, index) => aRule(`n${index}.test`));
  const judge = judgedBy(...rules);
  assert.equal(judge("n7.test"), true);
  assert.deepEqual(
    rules.filter(({ tally }) => tally.containers.size > 0).map(({ pattern }) => pattern.text),
    ["n7.test"],
  );
});
