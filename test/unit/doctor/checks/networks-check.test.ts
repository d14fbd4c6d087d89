// Of which networks that keep their containers apart the doctor speaks.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainerFact, NetworkFact } from "../../../../src/container/facts/fact.ts";
import { networkFindings } from "../../../../src/doctor/checks/networks-check.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../../support/scripted/builders.ts";

const APART: ReadonlySet<string> = new Set(["id-of-closed", "id-of-bridge"]);

function networkOf(id: string): NetworkFact {
  const name = id.replace("id-of-", "");
  return aNetworkFact({ id, name, ...(APART.has(id) && { apartBy: "enable_icc=false" }) });
}
const networks = new Map(
  ["closed", "bridge", "one", "two"].map((name) => [`id-of-${name}`, networkOf(`id-of-${name}`)]),
);

function details(containers: Readonly<Record<string, readonly string[]>>): string[] {
  const facts = Object.entries(containers).map(([name, on]): ContainerFact =>
    aContainer({ id: name, name, endpoints: on.map((networkName) => anEndpoint({ networkName })) }),
  );
  return networkFindings(facts, (id) => networks.get(id)).map(({ state, detail }) => `${state}: ${detail}`);
}

test("containers on such a network that share no other one", () => {
  const text = 'warning: containers on "closed" resolve each other and cannot connect (enable_icc=false)';
  assert.deepEqual(details({ a: ["closed"], b: ["closed", "one"], c: ["one"] }), [`${text}: a, b`]);
  assert.deepEqual(details({ a: ["closed", "one"], b: ["closed", "one"], c: ["closed", "two"] }), [`${text}: a, b, c`]);
  assert.deepEqual(details({ a: ["closed", "one", "two"], b: ["closed", "one"], c: ["closed", "two"] }), [
    `${text}: b, c`,
  ]);
  const many = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`c${index}`, ["closed"]]));
  assert.deepEqual(details(many), [`${text}: c0, c1, c2, c3 and more`]);
});

test("nothing where all share another one, where a container is alone, and of the default bridge, which has no names", () => {
  assert.deepEqual(details({ a: ["closed", "one"], b: ["closed", "one", "two"] }), []);
  assert.deepEqual(details({ a: ["closed"], b: ["one"] }), []);
  assert.deepEqual(details({ a: ["bridge"], b: ["bridge"] }), []);
});
