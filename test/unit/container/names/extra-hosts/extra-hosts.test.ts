// Proves the names of --add-host: addresses of both families, reverse names, and the switch.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EXTRA_HOSTS } from "../../../../../src/container/names/extra-hosts/extra-hosts.ts";
import { type Behaviour, DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../../../src/base/model/behaviour.ts";
import type { View } from "../../../../../src/base/model/view.ts";
import type { HostEntry } from "../../../../../src/container/facts/fact.ts";
import { TYPE, aClient, aContainer, aNetwork, aQuery, aView } from "../../../../support/scripted/builders.ts";
import { answerTo } from "../../../support/names.ts";
import { readName, replyOnce } from "../../../support/reply.ts";

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

function answer(name: string, type: number, entries = ENTRIES, behaviour?: Behaviour): string {
  return answerTo(viewOf(entries), name, type, behaviour);
}

test("a name has the addresses of all of its entries, in any letter case", () => {
  assert.equal(answer("aPi", TYPE.A), "10.1.0.1 10.1.0.2");
  assert.equal(answer("api", TYPE.AAAA), "fd01:0000:0000:0000:0000:0000:0000:0001");
});

test("without an address of the family, and for other types, a name has an empty answer and is not forwarded", () => {
  assert.equal(answer("other.example", TYPE.AAAA), "empty");
  assert.equal(answer("api", TYPE.TXT), "empty");
});

test("an address has the name of its first entry", () => {
  const parts = { behaviour: DEFAULT_BEHAVIOUR, client: aClient(viewOf(ENTRIES)) };
  const { answers } = replyOnce(aQuery({ name: "1.0.1.10.in-addr.arpa", type: TYPE.PTR }), parts);
  assert.equal(readName(answers[0]?.data ?? Buffer.of(0), 0).text, "API");
});

test("Docker's names take precedence", () => {
  const entries = [{ name: "web", address: "10.1.0.9" }];
  assert.equal(answer("web", TYPE.A, entries), "172.20.0.2");
});

test("in the mode strict, and without the switch, such names are forwarded, as Docker does", () => {
  for (const behaviour of [STRICT_BEHAVIOUR, { ...DEFAULT_BEHAVIOUR, answersExtraHosts: false }]) {
    assert.equal(answer("other.example", TYPE.A, ENTRIES, behaviour), "forwarded");
    assert.equal(answer("1.0.1.10.in-addr.arpa", TYPE.PTR, ENTRIES, behaviour), "forwarded");
  }
});

test("a name that no query can spell, and an address that is none, are left out", () => {
  const entries = ["a..b", `${"x".repeat(64)}.test`, ""].map((name) => ({ name, address: "10.1.0.9" }));
  assert.equal(answer("bad", TYPE.A, [...entries, { name: "bad", address: "nonsense" }]), "forwarded");
});

test("a container without entries has no such names", () => {
  assert.equal(EXTRA_HOSTS.namesFor(aContainer(), undefined), undefined);
});
