// Proves the names of --add-host: addresses of both families, reverse names, and none in strict mode.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { View } from "../../../src/base/model/view.ts";
import type { PlacedNames } from "../../../src/container/names/name-sources.ts";
import type { HostEntry } from "../../../src/container/facts/fact.ts";
import { GIVEN_NAMES, open } from "../../../src/features/extra-hosts/extra-hosts.ts";
import { TYPE, aClient, aContainer, aNetwork, aQuery, aView } from "../../support/scripted/builders.ts";
import { composed, portsOf } from "../../unit/support/control-ports.ts";
import { rowsOf } from "../../unit/support/listed-names.ts";
import { answerTo } from "../../unit/support/names.ts";
import { readName, replyOnce } from "../../unit/support/reply.ts";

const ENTRIES: readonly HostEntry[] = [
  { name: "API", address: "10.1.0.1" },
  { name: "api", address: "10.1.0.2" },
  { name: "api", address: "fd01::1" },
  { name: "other.example", address: "10.1.0.1" },
];

function viewOf(entries: readonly HostEntry[]): View {
  const docker = aView([aNetwork({ name: "one", members: [{ names: ["web"], ipv4: "172.20.0.2" }] })]);
  const names = GIVEN_NAMES.namesFor(aContainer({ extraHosts: entries }), undefined);
  return { ...docker, names: names === undefined ? docker.names : [...docker.names, names] };
}

function answer(name: string, type: number, entries = ENTRIES): string {
  return answerTo(viewOf(entries), name, type);
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

test("in the mode strict there are no such names, as in Docker", () => {
  const namesIn = (isStrict: boolean): unknown => {
    const made = open().makeNames?.({ isStrict } as never, {} as never);
    return (made as PlacedNames).source.namesFor(aContainer({ extraHosts: ENTRIES }), undefined);
  };
  assert.notEqual(namesIn(false), undefined);
  assert.equal(namesIn(true), undefined);
});

test("a name that no query can spell, and an address that is none, are left out", () => {
  const entries = ["a..b", `${"x".repeat(64)}.test`, ""].map((name) => ({ name, address: "10.1.0.9" }));
  assert.equal(answer("bad", TYPE.A, [...entries, { name: "bad", address: "nonsense" }]), "forwarded");
});

test("a container without entries has no such names", () => {
  assert.equal(GIVEN_NAMES.namesFor(aContainer(), undefined), undefined);
});

test("a name of --add-host is listed before that of a container, as in /etc/hosts", async () => {
  const makeNames = (): readonly PlacedNames[] => [{ place: "extra-hosts", source: GIVEN_NAMES }];
  const asker = {
    ...composed("shop", "web", "a", 2),
    extraHosts: [
      { name: "Api", address: "10.8.0.1" },
      { name: "printer", address: "10.8.0.2" },
    ],
  };
  const ports = portsOf([asker, composed("shop", "api", "ab", 3)], [], { makeNames });
  assert.deepEqual(await rowsOf(ports, asker, "api", "printer"), [
    "api: resolves from --add-host to 10.8.0.1",
    "api: shadowed --add-host from docker on a to 10.0.0.3+shop-api-1",
    "printer: resolves from --add-host to 10.8.0.2",
  ]);
});
