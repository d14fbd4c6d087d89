// Proves which namespace has which policies, when that changes, and that the log of refusals keeps to its bounds.

import assert from "node:assert/strict";
import { test } from "node:test";

import { wireLabels } from "../../../src/base/dns/name.ts";
import { StoredName } from "../../../src/base/model/label-table.ts";
import { readSettings } from "../../../src/config/file/settings-file.ts";
import type { NamespacePolicy } from "../../../src/features/policy/judge/namespace-policy.ts";
import { type PolicedClient, PolicyBook } from "../../../src/features/policy/book/policy-book.ts";
import type { PolicySubject } from "../../../src/features/policy/book/assignment.ts";
import { RefusalLog } from "../../../src/features/policy/book/refusal-log.ts";
import { refusalOf } from "../../../src/features/policy/judge/refusal.ts";
import type { Policy } from "../../../src/features/policy/model/policy.ts";
import { POLICY_LIMITS } from "../../../src/features/policy/model/limits.ts";

interface Given extends Partial<Omit<PolicySubject, "label">> {
  readonly id: string;
  readonly labels?: Readonly<Record<string, string>>;
}

function subject({ labels = {}, ...more }: Given): PolicySubject {
  const { id } = more;
  return { ownerId: id, name: id, networks: [], project: null, service: null, ...more, label: (key) => labels[key] };
}

class Client implements PolicedClient {
  policy: NamespacePolicy | undefined;
  forgotten = 0;
  #close: () => void = () => undefined;

  setPolicy(policy: NamespacePolicy | undefined): void {
    this.policy = policy;
  }

  forgetAnswers(): void {
    this.forgotten++;
  }

  onClose(act: () => void): void {
    this.#close = act;
  }

  close(): void {
    this.#close();
  }
}

function policies(text: string): readonly Policy[] {
  return readSettings(Buffer.from(`version: 1\npolicies:\n${text}`), "f").values.policies ?? [];
}

function bookOf(subjects: () => readonly PolicySubject[], showsNames = true, now = (): number => 0): PolicyBook {
  const parts = { onLogged: () => undefined, showsNames: () => showsNames, onGrant: () => undefined, now };
  const book = new PolicyBook(parts);
  book.subjects = (owner) => subjects().filter(({ ownerId }) => owner === undefined || owner === ownerId);
  return book;
}

const FIVE = `  net: {mode: enforce, for: [network=n1]}
  proj: {mode: enforce, for: [project=shop]}
  serv: {mode: audit, for: [service=web]}
  lab: {mode: enforce, for: [label=team=a, label=x]}
  free: {mode: enforce}
`;

test("a container has the policies of its networks, project, service and labels", () => {
  const all = [
    subject({ id: "a", networks: ["n0", "n1"] }),
    subject({ id: "b", project: "shop", service: "web" }),
    subject({ id: "c", labels: { team: "a" } }),
    subject({ id: "d", labels: { team: "b" } }),
    subject({ id: "e", labels: { x: "" } }),
    subject({ id: "f", labels: { "io.dns11.policy": " free " } }),
    subject({ id: "g", networks: ["n1x"], project: "shop2", service: "webb" }),
  ];
  const book = bookOf(() => all);
  book.set(policies(FIVE));
  const names = all.map(({ id }) =>
    book
      .assignmentOf(id)
      .policies.map(({ policy }) => policy.name)
      .join(),
  );
  assert.deepEqual(names, ["net", "proj,serv", "lab", "", "lab", "free", ""]);
  assert.match(
    book.assignmentOf("b").problems[0] ?? "",
    /it has 2 policies.*proj by project shop of b \(f:4:3\), serv/,
  );
});

test("containers that share a namespace share its policies", () => {
  const all = [
    subject({ id: "a", networks: ["n1"] }),
    subject({ id: "b", ownerId: "a", labels: { "io.dns11.policy": "free" } }),
  ];
  const book = bookOf(() => all);
  book.set(policies(FIVE));
  assert.deepEqual(
    book.assignmentOf("a").policies.map(({ policy }) => policy.name),
    ["net", "free"],
  );
});

test("a policy that nobody has defined allows nothing, and is named", () => {
  const all = [subject({ id: "a", labels: { "io.dns11.policy": "tpyo\u001B[31m" } })];
  const book = bookOf(() => all);
  book.set([]);
  const client = new Client();
  book.open(client, "a");
  assert.equal(client.policy?.isEnforcing, true);
  assert.equal(client.policy?.policies[0]?.name, "invalid");
  assert.match(book.assignmentOf("a").problems[0] ?? "", /chooses a policy that the settings do not define/);
});

test("a container that starts again has asked what it has asked, for two minutes", () => {
  let nowMs = 0;
  const all = [subject({ id: "a", networks: ["n1"] }), subject({ id: "b", networks: ["n1"] })];
  const book = bookOf(
    () => all,
    true,
    () => nowMs,
  );
  book.set(policies(FIVE));
  const client = new Client();
  book.open(client, "a");
  const name = new StoredName(wireLabels("a.test") ?? new Uint8Array());
  while (client.policy?.leave(name, false) === undefined);
  client.close();
  const [again, other] = [new Client(), new Client()];
  book.open(again, "a");
  book.open(other, "b");
  assert.equal(again.policy?.leave(name, true)?.reason, "questions");
  assert.equal(other.policy?.leave(name, true), undefined);
  again.close();
  nowMs += POLICY_LIMITS.formerMs;
  const late = new Client();
  book.open(late, "a");
  assert.notEqual(late.policy, again.policy);
  assert.equal(late.policy?.leave(name, true), undefined);
});

test("what a container has asked counts also after it was not described, and ended meanwhile", () => {
  const described = subject({ id: "a", labels: { team: "a" } });
  let all = [described];
  const book = bookOf(() => all);
  book.set(policies(FIVE));
  const name = new StoredName(wireLabels("a.test") ?? new Uint8Array());
  const started = (): Client => {
    const client = new Client();
    book.open(client, "a");
    return client;
  };
  const first = started();
  while (first.policy?.leave(name, false) === undefined);
  first.close();
  all = [subject({ id: "a", isUndescribed: true })];
  started().close();
  const last = started();
  assert.deepEqual(
    last.policy?.policies.map(({ name: each }) => each),
    ["not-described-yet"],
  );
  all = [described];
  book.refresh();
  assert.deepEqual([last.policy.policies[0]?.name, last.policy.leave(name, true)?.reason], ["lab", "questions"]);
});

test("a client has its policy when it is opened, and the kernel forgets with each change", () => {
  let all = [subject({ id: "a", networks: ["n1"] }), subject({ id: "b" })];
  const book = bookOf(() => all);
  book.set(policies(FIVE));
  const [a, b] = [new Client(), new Client()];
  book.open(a, "a");
  book.open(b, "b");
  assert.deepEqual([a.policy?.isEnforcing, b.policy], [true, undefined]);
  const before = a.policy;
  const forgotten = a.forgotten;
  // The same policies keep what they know.
  book.set(policies(FIVE));
  assert.equal(a.policy, before);
  book.set(policies(FIVE.replace("net: {mode: enforce", "net: {mode: audit")));
  assert.deepEqual([a.policy?.isEnforcing, a.forgotten], [false, forgotten + 1]);
  assert.equal(b.forgotten, 0);
  all = [subject({ id: "a" }), subject({ id: "b", networks: ["n1"] })];
  book.refresh();
  assert.deepEqual([a.policy, b.policy?.isEnforcing], [undefined, false]);
  // One that is not listed any more keeps what it had, until it is closed.
  all = [];
  book.refresh();
  assert.ok(b.policy !== undefined);
  a.close();
  b.close();
  assert.equal(book.policyOf("b"), undefined);
});

test("what an operator allows lasts for its time, also while its container is started again", () => {
  let nowMs = 0;
  const agent = subject({ id: "a", networks: ["n1"] });
  let all = [agent];
  const book = bookOf(
    () => all,
    true,
    () => nowMs,
  );
  book.set(policies(FIVE));
  book.grant("a", "x.test", 1_000, "root");
  all = [];
  book.refresh();
  all = [agent];
  const client = new Client();
  book.open(client, "a");
  assert.equal(client.policy?.grants.length, 1);
  nowMs = 1_000;
  assert.deepEqual(book.grantsOf("a"), []);
});

test("a grant is for one container, replaces an earlier one, and there are so many of a container", () => {
  const all = [subject({ id: "a", networks: ["n1"] }), subject({ id: "b", networks: ["n1"] })];
  const book = bookOf(() => all);
  book.set(policies(FIVE));
  const client = new Client();
  book.open(client, "a");
  book.grant("a", "x.test", 10, "root");
  book.grant("a", "X.test", 20, "root");
  assert.equal(book.grantsOf("a").length, 1);
  assert.equal(book.grantsOf("b").length, 0);
  assert.ok(client.policy?.grantFor(new StoredName(wireLabels("x.test") as Uint8Array)) !== undefined);
  // Also after a change of the policies.
  book.set(policies(FIVE.replace("net: {mode: enforce", "net: {mode: enforce, allow: [z.test]")));
  assert.equal(client.policy?.grants.length, 1);
  for (let index = 0; index < 99; index++) book.grant("a", `n${index}.test`, 10, "root");
  assert.throws(() => book.grant("a", "more.test", 10, "root"), /such grants/);
  assert.throws(() => book.grant("b", "a b", 10, "root"), /invalid name/);
});

const [POLICY] = policies("  net: {mode: enforce}\n");

test("the log counts what is repeated, keeps each container's share, and tells followers what is new", async () => {
  const log = new RefusalLog();
  assert.ok(POLICY !== undefined);
  const refusal = refusalOf(POLICY, "not-allowed");
  assert.equal(log.note("quiet", refusal, "x.test", 1, 0), true);
  assert.equal(log.note("quiet", refusal, "x.test", 1, 10), false);
  for (let index = 0; index < 10_000; index++) log.note("loud", refusal, `n${index}.test`, 1, index);
  const all = log.read(100_000);
  assert.equal(all.length, 2_000);
  assert.deepEqual(
    all.filter(({ containerId }) => containerId === "quiet").map(({ count }) => count),
    [2],
  );
  assert.equal(log.last("loud", "n9999.test", 1)?.containerId, "loud");
  assert.equal(log.last("loud", "n1.test", 1), undefined);
  // After a minute it is news again.
  assert.equal(log.note("quiet", refusal, "x.test", 1, 60_000), true);
  // Also where the clock was set back, and the policy of the last one counts.
  assert.equal(log.note("quiet", refusal, "x.test", 1, 50_000), true);
  const reloaded = refusalOf({ ...POLICY }, "not-allowed");
  assert.equal(log.note("quiet", reloaded, "x.test", 1, 50_001), false);
  assert.equal(log.last("quiet", "x.test", 1)?.refusal, reloaded);
  const end = new AbortController();
  const followed = log.follow(1, (id) => id === "quiet", end.signal);
  assert.equal((await followed.next()).value?.name, "x.test");
  const next = followed.next();
  log.note("loud", refusal, "other.test", 1, 0);
  log.note("quiet", refusal, "news.test", 1, 0);
  assert.equal((await next).value?.name, "news.test");
  end.abort();
  await followed.return();
});

test("where names are hidden, the log has none, and still counts", () => {
  const book = bookOf(() => [subject({ id: "a", networks: ["n1"] })], false);
  book.set(policies(FIVE));
  const client = new Client();
  book.open(client, "a");
  const name = new StoredName(wireLabels("x.test") as Uint8Array);
  const refusal = client.policy?.forward({ ...name, type: 1, class: 1 }, false);
  assert.ok(refusal !== undefined);
  client.policy?.note(refusal, name, 1);
  assert.deepEqual(
    book.log.read(10).map((each) => each.name),
    [null],
  );
  assert.equal(book.countsOf("a").refused, 1);
  assert.deepEqual(
    book.readings.find(({ count }) => count > 0),
    {
      policy: "net",
      mode: "enforce",
      verdict: "refused",
      count: 1,
    },
  );
});
