// A lease's lines: what each rule is read as, what is wrong with a line, the bounds of rules and leases, and that its end takes
// back everything. Whatever is sent, a lease stays open and answers each line once.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as fc from "fast-check";

import { RULE_ACTIONS } from "../../../src/api/lease.ts";
import { LAB_LIMITS } from "../../../src/features/lab/limits.ts";
import type { Lease } from "../../../src/features/lab/lease.ts";
import { Leases } from "../../../src/features/lab/leases.ts";
import { readRule } from "../../../src/features/lab/rule-reader.ts";
import { RuleBook } from "../../../src/features/lab/rule-book.ts";
import { countRounds } from "../../support/rig/rounds.ts";
import { runs } from "../../support/rig/runs.ts";

const HOLDER = { pid: 7, command: "suite" };
const open = (): { book: RuleBook; leases: Leases; lease: Lease } => {
  const book = new RuleBook();
  const leases = new Leases({ book, facts: () => new Map(), learnLabel: async () => await Promise.resolve() });
  return { book, leases, lease: leases.open(HOLDER) };
};
const onlySome = JSON.stringify({ rule: { action: "only", names: ["db"] } });
const errorOf = async (lease: Lease, line: string): Promise<string> =>
  ((await lease.handle(line)) as { error: string }).error;
const rule = (fields: object): string => JSON.stringify({ rule: { name: "db", action: "drop", ...fields } });

for (const [value, what] of [
  [{ name: "db", action: "servfail", every: 3 }, 'servfail for "db", one of 3'],
  [{ name: "**.x", action: "delay", ms: 200, jitter: 50, seed: 7 }, 'delay 200±50 ms for "**.x"'],
  [
    { name: "db", action: "drop", types: ["AAAA"], over: "udp", count: 2 },
    'drop for "db", types AAAA, over udp, the first 2',
  ],
  [{ action: "only", names: ["a", "b", "c", "d"] }, "only a, b, c and 1 more"],
  [{ action: "only" }, "only nothing"],
  [{ name: "a", action: "answer", answer: { mx: "10 m.test", ttl: 5 } }, 'answer for "a"'],
  [
    { name: "a", action: "sequence", answers: [["10.0.0.1"], "SERVFAIL", { cnames: ["b.test"], a: "10.0.0.2" }] },
    'sequence for "a"',
  ],
  [{ name: "a", action: "drop", probability: 0.5, seed: 1, perName: true }, 'drop for "a", with probability 0.5'],
] as const) {
  test(`${JSON.stringify(value)} is a rule: ${what}`, () => {
    assert.equal(readRule(value).what, what);
  });
}

for (const [fields, message] of [
  [{ action: "drop" }, /A rule needs a name/],
  [{ name: "db" }, /A rule needs an action: use one of nxdomain/],
  [{ name: "db", action: "dorp" }, /Unknown action "dorp": did you mean drop\?/],
  [{ name: 7, action: "drop" }, /Invalid name 7: use a text/],
  [{ name: "db", action: "drop", ms: 5 }, /Unknown field "ms" of a rule with the action drop/],
  [{ name: "db", action: "delay" }, /A delay needs its length/],
  [{ name: "db", action: "delay", ms: 1e9 }, /Invalid ms 1000000000: use a whole number from 0 to 60000/],
  [{ name: "db", action: "drop", count: 0 }, /Invalid count 0: use a whole number from 1/],
  [{ name: "db", action: "drop", probability: 2 }, /Invalid probability 2: use a number from 0 to 1/],
  [{ name: "db", action: "drop", seed: 7 }, /A seed has no effect/],
  [{ name: "db", action: "drop", types: ["QUAD"] }, /Unknown record type "QUAD"/],
  [{ name: "db", action: "drop", types: [] }, /Invalid types: use a list of 1 to 32/],
  [{ name: "db", action: "drop", over: "quic" }, /Invalid over "quic": use udp or tcp/],
  [{ name: "db", action: "drop", perName: 1 }, /Invalid perName 1: use true or false/],
  [{ name: "db", action: "answer" }, /An answer is missing/],
  [{ name: "db", action: "answer", answer: "10.0.0.256" }, /Invalid address "10\.0\.0\.256"/],
  [{ name: "db", action: "answer", answer: { aa: "10.0.0.1" } }, /Unknown record type "aa"/],
  [{ name: "db", action: "answer", answer: { rcode: "MAYBE" } }, /Invalid rcode "MAYBE"/],
  [{ name: "db", action: "answer", answer: { cnames: ["a..b"], a: "10.0.0.1" } }, /Invalid name "a\.\.b"/],
  [{ name: "db", action: "sequence" }, /The answers are missing/],
  [{ action: "only", fail: "nodata" }, /Invalid fail "nodata"/],
  [{ action: "only", fail: "toString" }, /Invalid fail "toString"/],
  [{ action: "only", count: 1 }, /Unknown field "count" of a rule with the action only/],
  [{ name: "db", action: "sequence", answers: [{ a: "10.0.0.1", times: 1_000 }, "NXDOMAIN"] }, /has 1001 answers/],
  [
    { name: "db", action: "sequence", answers: [1, 2, 3].map(() => ({ a: "10.0.0.1", times: 1_000 })) },
    /has 3000 answers: use at most 1000/,
  ],
  ["db", /Invalid rule: use a map/],
] as const) {
  test(`${JSON.stringify(fields)} is refused, with what to use`, () => {
    assert.throws(() => readRule(fields), message);
  });
}

test("a value that is nested as deep as a line allows is named, and the lease goes on", async () => {
  const { lease } = open();
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  assert.match(await errorOf(lease, `{"rule":{"name":${deep},"action":"drop"}}`), /Invalid name \(a list\)/);
  assert.ok("id" in (await lease.handle(rule({}))));
});

test("a line that is wrong is answered, and the lease goes on", async () => {
  const { lease, book } = open();
  for (const line of [
    "",
    "{",
    "[]",
    "7",
    "null",
    "{}",
    '{"rule":{},"report":true}',
    '{"remove":1}',
    '{"report":1}',
    '{"record":7}',
  ])
    assert.match(await errorOf(lease, line), /./, line);
  assert.deepEqual(await lease.handle(rule({})), { line: 11, id: 1, containers: 0 });
  assert.deepEqual(await lease.handle('{"record":{}}'), { line: 12, id: 2, containers: 0 });
  assert.match(await errorOf(lease, '{"record":{}}'), /records already/);
  assert.deepEqual(await lease.handle('{"remove":2}'), { line: 14, removed: 2 });
  assert.equal(book.scopes, 1);
  lease.end();
  assert.equal(book.scopes, 0);
});

test("a line that is read after the end of its lease makes no rule", async () => {
  const { lease, leases, book } = open();
  leases.end(lease);
  assert.match(await errorOf(lease, rule({})), /The lease has ended/);
  assert.match(await errorOf(lease, '{"record":{}}'), /The lease has ended/);
  assert.equal(book.scopes, 0);
});

test("a query looks at a bounded number of rules: those for one name have a bound, and each process a share of it", async () => {
  const { leases, lease } = open();
  const other = leases.open(HOLDER);
  for (let i = 1; i < LAB_LIMITS.nameRulesEach; i += 1) await lease.handle(rule({}));
  assert.ok("id" in (await other.handle(rule({ in: { container: "web" } }))));
  assert.match(await errorOf(lease, rule({ name: "DB." })), /suite, pid 7 has 512 rules for "db"\. Remove one of them/);
  assert.ok("id" in (await lease.handle(rule({ name: "**" }))));
  const another = leases.open({ pid: 8, command: "" });
  for (let i = 0; i < LAB_LIMITS.nameRulesEach; i += 1) await another.handle(rule({}));
  const last = leases.open({ pid: 9, command: "" });
  assert.match(await errorOf(last, rule({})), /There are 1024 rules for "db"/);
  await lease.handle('{"remove":1}');
  assert.ok("id" in (await last.handle(rule({}))));
  assert.match(await errorOf(lease, rule({})), /There are 1024 rules for "db"/);
  leases.end(other);
  assert.ok("id" in (await lease.handle(rule({}))));
  for (let i = 0; i < LAB_LIMITS.nameRulesEach; i += 1) await lease.handle(onlySome);
  assert.match(await errorOf(lease, onlySome), /has 512 rules with the action only/);
});

test("what thousands of rules have done is reported in parts", async () => {
  const { lease, leases } = open();
  for (let i = 0; i < LAB_LIMITS.rulesEach; i += 1) await lease.handle(rule({ name: `n${i}` }));
  using rounds = countRounds();
  const { leases: all } = await leases.report();
  assert.equal(all[0]?.rules.length, LAB_LIMITS.rulesEach);
  assert.ok(rounds.count > 0);
});

test("leases, rules and choices of containers have bounds, and each process a share of them", async () => {
  const { leases, lease } = open();
  for (let i = 1; i < LAB_LIMITS.leasesEach; i += 1) leases.open(HOLDER);
  assert.throws(() => leases.open(HOLDER), /16 leases are open by suite, pid 7$/);
  for (let i = 0; i < LAB_LIMITS.rulesEach; i += 1) await lease.handle(rule({ name: `n${i}` }));
  assert.match(await errorOf(lease, rule({})), /suite, pid 7 has 5000 rules\. Remove one of them/);
  const others = [8, 9].map((pid) => leases.open({ pid, command: "" }));
  for (const each of others)
    for (let i = 0; i < LAB_LIMITS.rulesEach; i += 1) await each.handle(rule({ name: `n${i}` }));
  assert.equal(leases.rules, LAB_LIMITS.rules);
  assert.match(await errorOf(others[1] as Lease, rule({})), /pid 9 has|There are 10000 rules/);
  leases.end(lease);
  const third = leases.open({ pid: 10, command: "" });
  for (let i = 1; i < LAB_LIMITS.scopes; i += 1) await third.handle(rule({ in: { container: `c${i}` } }));
  assert.match(
    await errorOf(third, rule({ in: { container: "one-more" } })),
    /There are rules for 64 choices of containers/,
  );
  assert.ok("id" in (await third.handle(rule({ in: { container: "c1" } }))));
});

test("whatever a line is, it is answered once, and by no internal error", async () => {
  const { lease } = open();
  const text = fc.oneof(
    fc.string({ maxLength: 20 }),
    fc.constantFrom("db", "**", "*.x.test", "10.0.0.1", "NXDOMAIN", "A", "tcp"),
  );
  const value: fc.Arbitrary<unknown> = fc.oneof(
    text,
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.array(text, { maxLength: 4 }),
    fc.dictionary(text, text, { maxKeys: 3 }),
  );
  const fields = fc.record(
    {
      name: value,
      action: fc.oneof(fc.constantFrom(...RULE_ACTIONS), value),
      in: value,
      types: value,
      over: value,
      count: value,
      every: value,
      probability: value,
      seed: value,
      ms: value,
      jitter: value,
      answer: value,
      answers: value,
      ttl: value,
      names: value,
      fail: value,
    },
    { requiredKeys: [] },
  );
  const line = fc.oneof(
    fc.record({ rule: fields }).map((each) => JSON.stringify(each)),
    fc.record({ remove: value }).map((each) => JSON.stringify(each)),
    fc.json(),
    fc.string(),
  );
  let lines = 0;
  await fc.assert(
    fc.asyncProperty(line, async (each) => {
      const reply = (await lease.handle(each)) as { line: number; error?: string };
      assert.equal(reply.line, (lines += 1));
      assert.ok(reply.error === undefined || reply.error.length < 2_000);
    }),
    { numRuns: runs(300) },
  );
});

test("docs/testing.md has the bounds", () => {
  const { leases, leasesEach, rules, rulesEach } = LAB_LIMITS;
  const [inAll, each] = [rules, rulesEach].map((count) => count.toLocaleString("en"));
  const text = `At most ${leases} labs are open, ${leasesEach} of one process, with ${inAll} rules in all and ${each} of one process.`;
  assert.ok(readFileSync("docs/testing.md", "utf8").includes(text), text);
});
