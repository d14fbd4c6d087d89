// Proves the names of --add-host: addresses of both families, reverse names, and the switch.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EXTRA_HOSTS } from "../../../../../src/container/names/extra-hosts/extra-hosts.ts";
import { type Behaviour, DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../../../src/base/model/behaviour.ts";
import { presentation } from "../../../../../src/base/dns/name.ts";
import type { View } from "../../../../../src/base/model/view.ts";
import type { HostEntry } from "../../../../../src/container/facts/fact.ts";
import { TYPE, aClient, aContainer, aNetwork, aQuery, aView } from "../../../../support/scripted/builders.ts";
import { type AnswerResult, answerOnce } from "../../../support/reply.ts";

const ENTRIES: readonly HostEntry[] = [
  { name: "API", address: "10.1.0.1" },
  { name: "api", address: "10.1.0.2" },
  { name: "api", address: "fd01::1" },
  { name: "other.example", address: "10.1.0.1" },
];

function viewOf(entries: readonly HostEntry[]): View {
  const docker = aView([aNetwork({ name: "one", members: [{ names: ["web"], ipv4: "172.20.0.2" }] })]);
  const names = EXTRA_HOSTS.namesFor(aContainer({ extraHosts: entries }), undefined);
  return { ...docker, names: names === undefined ? docker.names : [...docker.names, names] };
}

function answer(name: string, type: number, entries = ENTRIES, behaviour: Behaviour = DEFAULT_BEHAVIOUR): AnswerResult {
  return answerOnce(aQuery({ name, type }), { behaviour, client: aClient(viewOf(entries)) });
}

function addresses(result: AnswerResult): string[] {
  assert.equal(result.kind, "reply");
  return result.kind === "reply"
    ? result.reply.answers.map(({ data }) => Buffer.from(data).toString("hex")).toSorted()
    : [];
}

test("a name has the addresses of all of its entries, in any letter case", () => {
  assert.deepEqual(addresses(answer("aPi", TYPE.A)), ["0a010001", "0a010002"]);
  assert.deepEqual(addresses(answer("api", TYPE.AAAA)), [`fd01${"0".repeat(27)}1`]);
});

test("without an address of the family, and for other types, a name has an empty answer and is not forwarded", () => {
  assert.deepEqual(addresses(answer("other.example", TYPE.AAAA)), []);
  assert.deepEqual(addresses(answer("api", TYPE.TXT)), []);
});

test("an address has the name of its first entry", () => {
  const result = answer("1.0.1.10.in-addr.arpa", TYPE.PTR);
  assert.equal(result.kind, "reply");
  const data = result.kind === "reply" ? result.reply.answers[0]?.data : undefined;
  assert.equal(data && presentation(data, 0, data.length), "API");
});

test("Docker's names take precedence", () => {
  const entries = [{ name: "web", address: "10.1.0.9" }];
  assert.deepEqual(addresses(answer("web", TYPE.A, entries)), ["ac140002"]);
});

test("in the mode strict, and without the switch, such names are forwarded, as Docker does", () => {
  for (const behaviour of [STRICT_BEHAVIOUR, { ...DEFAULT_BEHAVIOUR, answersExtraHosts: false }]) {
    assert.equal(answer("other.example", TYPE.A, ENTRIES, behaviour).kind, "deferred");
    assert.equal(answer("1.0.1.10.in-addr.arpa", TYPE.PTR, ENTRIES, behaviour).kind, "deferred");
  }
});

test("a name that no query can spell, and an address that is none, are left out", () => {
  const entries = ["a..b", `${"x".repeat(64)}.test`, ""].map((name) => ({ name, address: "10.1.0.9" }));
  const view = viewOf([...entries, { name: "bad", address: "nonsense" }]);
  const client = aClient(view);
  assert.equal(answerOnce(aQuery({ name: "bad" }), { behaviour: DEFAULT_BEHAVIOUR, client }).kind, "deferred");
});

test("a container without entries has no such names", () => {
  assert.equal(EXTRA_HOSTS.namesFor(aContainer(), undefined), undefined);
});
