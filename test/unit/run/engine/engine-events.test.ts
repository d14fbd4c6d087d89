// Proves that a start is recorded once, with its service only if the container's creator has given it, also while the image is
// being inspected.

import assert from "node:assert/strict";
import { test } from "node:test";

import { splitLabels } from "../../../../src/container/facts/labels.ts";
import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { EventRing } from "../../../../src/control/history/history-rings.ts";
import { EngineEvents } from "../../../../src/run/engine/engine-events.ts";
import { aContainer } from "../../../support/scripted/builders.ts";

const PLACE = { "com.docker.compose.project": "shop", "com.docker.compose.service": "db" };
const AWAITED = aContainer({ name: "db", ...splitLabels(PLACE, "awaited") });

function rig() {
  const events = new EventRing();
  const facts = new Map<string, ContainerFact>();
  const recorder = new EngineEvents({ events, factOf: (id) => facts.get(id), isSynced: () => true });
  const put = (fact: ContainerFact): void => {
    recorder.onContainer(fact);
    facts.set(fact.id, fact);
  };
  const recorded = (): string[] => events.read(10).events.map(({ kind, service }) => `${kind} ${service}`);
  return { recorder, put, recorded };
}

for (const [whose, image, service] of [
  ["its image's", PLACE, null],
  ["its creator's", {}, "db"],
] as const) {
  test(`a start is recorded once its labels are known to be ${whose}`, () => {
    const { put, recorded } = rig();
    put(AWAITED);
    assert.deepEqual(recorded(), []);
    for (let count = 0; count < 2; count++) put({ ...AWAITED, ...splitLabels(PLACE, image) });
    assert.deepEqual(recorded(), [`container-started ${service}`]);
  });
}

test("a container that ends before that has started, too", () => {
  const { recorder, put, recorded } = rig();
  put(AWAITED);
  recorder.onGone(AWAITED.id, { exitCode: 1, isAsked: false });
  assert.deepEqual(recorded(), ["container-started null", "container-died null"]);
});
