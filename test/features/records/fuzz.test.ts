// Fuzz of what people declare: names in YAML, and files in the format of /etc/hosts, from fragments that mean something and bytes that do
// not. Nothing may throw, a report stays short, and a neighbour keeps its name.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { DeclaredName } from "../../../src/base/model/declared-name.ts";
import { LABEL_DEFAULTS } from "../../../src/base/model/name-choices.ts";
import { BadSettings } from "../../../src/config/bad-settings.ts";
import { Directory } from "../../../src/container/registry/directory.ts";
import { readHostsText } from "../../../src/features/records/files.ts";
import { DeclaredNames } from "../../../src/features/records/names.ts";
import { INPUTS, SEED, text } from "../../fuzz/any-labels.ts";
import { Random } from "../../fuzz/random.ts";
import { TYPE, aClient, aContainer, aNetworkFact, aQuery, anEndpoint } from "../../support/scripted/builders.ts";
import { declaredIn } from "../../support/scripted/declarations.ts";
import { addressesIn, answerOnce, replyOnce } from "../../unit/support/reply.ts";

const YAML_KEYS = [
  ..."a aaaa cname txt srv mx ptr caa container ttl records networks projects x.test *.x.test n web __proto__".split(
    " ",
  ),
  ..."10.0.0.1 5.0.0.10.in-addr.arpa * *.com".split(" "),
];
const YAML_VALUES = [
  ..."10.0.0.1 10.0.0.256 fd00::1 web x.test n 5m 1.5s true null ~ 5 &a *a !!binary".split(" "),
  '"10 x.test"',
  '"0 5 80 x.test"',
  "'0 issue \"ca.test\"'",
  "[]",
  "{}",
];

function yaml(random: Random, depth = 0): string {
  if (random.once(40)) return text(random);
  if (depth === 4 || random.once(3)) return random.pick(YAML_VALUES);
  const parts = Array.from({ length: random.below(4) }, () => yaml(random, depth + 1));
  if (random.once(4)) return `[${parts.join(", ")}]`;
  return `{${parts.map((part) => `"${random.pick(YAML_KEYS)}": ${part}`).join(", ")}}`;
}

const USUAL_NAMES = ["x.test", "*.x.test", "n", "web", "y.z.test", "5.0.0.10.in-addr.arpa"];
const USUAL_VALUES = [
  "10.0.0.1",
  "[10.0.0.1, fd00::1]",
  "{cname: web}",
  "{container: n}",
  "{txt: é}",
  "{srv: 0 5 80 x.test}",
  "{mx: 10 x.test, ttl: 5m}",
  "{ptr: x.test}",
];

/** Mostly as it should be, so that names are accepted, too. */
function recordsOf(random: Random): string {
  const names = USUAL_NAMES.filter(() => random.once(3));
  const record = (name: string): string => {
    const key = random.once(20) ? random.pick(YAML_KEYS) : name;
    return `"${key}": ${random.once(12) ? yaml(random, 2) : random.pick(USUAL_VALUES)}`;
  };
  return `{${names.map((name) => record(name)).join(", ")}}`;
}

test("declared names of any YAML: names that are answered, or mistakes with a place", () => {
  const neighbour = aContainer({ id: "n", name: "n", endpoints: [anEndpoint({ names: ["n"], ipv4: "10.1.0.2" })] });
  const source = new DeclaredNames({ labels: LABEL_DEFAULTS });
  const shared = { sources: [{ place: "declared" as const, source }], machines: undefined };
  const directory = new Directory({ serversMax: 3, ownAddress: "127.0.0.11", shared });
  directory.putNetwork(aNetworkFact());
  directory.putContainer(neighbour);
  let accepted = 0;
  for (let index = 0; index < INPUTS / 3; index++) {
    const random = new Random(SEED + 2, index);
    const scoped = (): string => (random.once(8) ? yaml(random) : `{one: {records: ${recordsOf(random)}}}`);
    const written = [
      `records: ${recordsOf(random)}`,
      ...["networks", "projects"].flatMap((key) => (random.once(3) ? [`${key}: ${scoped()}`] : [])),
    ];
    const names = declaredOrMistakes(written.join("\n"), `input ${index}`);
    accepted += names.length;
    source.set(names);
    const client = aClient(directory.viewOf(neighbour));
    const ask = (name: string, type: number): readonly string[] =>
      addressesIn(replyOnce(aQuery({ name, type }), { behaviour: DEFAULT_BEHAVIOUR, client }));
    assert.ok(ask("n", TYPE.A).includes("10.1.0.2"), `input ${index}: a container's name comes first`);
    for (const { name } of names.slice(0, 5))
      for (const type of [TYPE.A, TYPE.SRV, TYPE.TXT, TYPE.ANY])
        assert.doesNotThrow(() =>
          answerOnce(aQuery({ name: name.replace("*", "any"), type }), { behaviour: DEFAULT_BEHAVIOUR, client }),
        );
  }
  assert.ok(accepted > INPUTS / 20, `${accepted} names`);
});

function declaredOrMistakes(written: string, about: string): readonly DeclaredName[] {
  try {
    return declaredIn(written);
  } catch (error) {
    assert.ok(error instanceof BadSettings, `${about}: ${String(error)}`);
    for (const line of error.lines) {
      assert.match(line, /^s\.yaml:\d+:\d+: /, about);
      assert.ok(line.length < 1_000, `${about}: ${line.length} characters`);
    }
    return [];
  }
}

test("files in the format of /etc/hosts, of any text", () => {
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED + 1, index);
    const lines = Array.from({ length: random.below(6) }, () => `${text(random)} ${text(random)}`);
    assert.doesNotThrow(() => readHostsText(lines.join("\n"), "fuzzed.hosts"), `input ${index}`);
  }
});
