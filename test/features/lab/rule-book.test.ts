// Rules and the clients that they are for: whoever is in the scope has them before its first query, whoever leaves it has not, and
// the kernel's answers end in the same step.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

import { readPattern } from "../../../src/base/model/name-pattern.ts";
import { type Rule, RuleTally } from "../../../src/features/lab/rules.ts";
import { type JudgedClient, RuleBook, type RuleScope } from "../../../src/features/lab/rule-book.ts";
import { Tape } from "../../../src/features/lab/recording.ts";
import { Verdicts } from "../../../src/features/lab/verdicts.ts";

class FakeClient implements JudgedClient {
  judge: JudgedClient["judge"];
  forgotten = 0;
  close: () => void = () => undefined;
  readonly repeater = { forget: () => void (this.forgotten += 1) };

  onClose(act: () => void): void {
    this.close = act;
  }
}

let ids = 0;
const aRule = (): Rule => ({
  id: (ids += 1),
  pattern: readPattern("db"),
  types: undefined,
  over: undefined,
  action: { kind: "drop" },
  limits: {},
  text: "drop",
  tally: new RuleTally(),
});
const aScope = (key: string, members: Set<string>): RuleScope => ({ key, select: () => new Set(members) });

test("clients in the scope have a rule, before and after it was added, until it is removed", () => {
  const book = new RuleBook();
  const [first, second, other] = [new FakeClient(), new FakeClient(), new FakeClient()];
  book.open(first, "a");
  book.open(other, "c");
  const [rule, scope] = [aRule(), aScope("ab", new Set(["a", "b"]))];
  assert.equal(book.add(rule, scope), 1);
  book.open(second, "b");
  assert.deepEqual(
    [first, second, other].map(({ judge, forgotten }) => [judge === undefined, forgotten]),
    [
      [false, 1],
      [false, 1],
      [true, 0],
    ],
  );
  book.remove(rule, scope);
  assert.deepEqual(
    [first, second].map(({ judge }) => judge),
    [undefined, undefined],
  );
  assert.equal(book.scopes, 0);
});

test("containers that start are looked at once for each change, however many scopes there are", async () => {
  const book = new RuleBook();
  let looks = 0;
  const scope: RuleScope = { key: "all", select: () => new Set([String((looks += 1))]) };
  book.add(aRule(), scope);
  book.containersChanged();
  for (let each = 0; each < 100; each++) book.open(new FakeClient(), `c${each}`);
  await turn();
  assert.equal(looks, 2);
});

test("a container that comes into the scope, or leaves it, is noticed at the end of the turn", async () => {
  const book = new RuleBook();
  const members = new Set<string>();
  const client = new FakeClient();
  book.open(client, "a");
  book.add(aRule(), aScope("network", members));
  members.add("a");
  book.containersChanged();
  book.containersChanged();
  assert.equal(client.judge, undefined);
  await turn();
  assert.notEqual(client.judge, undefined);
  assert.equal(client.forgotten, 1);
  members.delete("a");
  book.containersChanged();
  await turn();
  assert.equal(client.judge, undefined);
});

test("a container that has joined is not forgotten because another one starts in between", async () => {
  const book = new RuleBook();
  const members = new Set<string>();
  const [joined, started] = [new FakeClient(), new FakeClient()];
  book.open(joined, "a");
  book.add(aRule(), aScope("network", members));
  members.add("a").add("b");
  book.containersChanged();
  book.open(started, "b");
  assert.notEqual(joined.judge, undefined);
  assert.notEqual(started.judge, undefined);
  book.containersChanged();
  await turn();
  assert.equal(joined.forgotten, 1);
});

test("a second client of a container has its rules, and a closed one is no longer changed", () => {
  const book = new RuleBook();
  const [first, second] = [new FakeClient(), new FakeClient()];
  const [rule, scope] = [aRule(), aScope("a", new Set(["a"]))];
  book.open(first, "a");
  book.add(rule, scope);
  book.open(second, "a");
  assert.notEqual(second.judge, undefined);
  first.close();
  assert.equal(book.add(aRule(), scope), 1);
  assert.equal(first.forgotten, 1);
  second.close();
  assert.equal(book.add(aRule(), scope), 0);
});

test("a tape makes a client judged, so that nothing is answered without it", () => {
  const book = new RuleBook();
  const client = new FakeClient();
  const [tape, scope] = [new Tape(), aScope("a", new Set(["a"]))];
  book.open(client, "a");
  book.add(tape, scope);
  assert.ok(client.judge instanceof Verdicts);
  assert.equal(
    [...client.judge.sets].some(({ tapes }) => tapes.has(tape)),
    true,
  );
  assert.equal(client.forgotten, 1);
  book.remove(tape, scope);
  assert.equal(client.judge, undefined);
});
