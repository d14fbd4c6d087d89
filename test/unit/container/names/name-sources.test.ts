// Proves that sources of names stand in the order of their places, whoever makes them, and in whatever order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LOCAL_SOURCE, LOCAL_SOURCES, type LocalSource } from "../../../../src/base/model/local-source.ts";
import { MISS } from "../../../../src/base/model/visible-names.ts";
import type { NameSource } from "../../../../src/container/names/source/name-source.ts";
import { aContainer } from "../../../support/scripted/builders.ts";
import { aDirectory } from "../../support/names.ts";

function sourceOf(kind: LocalSource): NameSource {
  const names = { places: [], kind, find: () => MISS, pointer: () => undefined };
  return { namesFor: () => names };
}

test("a source stands at its place among those of the core; at one place the core's comes first, then as they are made", () => {
  const asker = aContainer();
  const directory = aDirectory([asker], {
    makeNames: () => [
      { place: "stopped", source: sourceOf(LOCAL_SOURCE.stopped) },
      { place: "extra-names", source: sourceOf(LOCAL_SOURCE.extra) },
      { place: "networks", source: sourceOf(LOCAL_SOURCE.kubernetes) },
      { place: "networks", source: sourceOf(LOCAL_SOURCE.etcd) },
      { place: "first", source: sourceOf(LOCAL_SOURCE.rule) },
    ],
  });
  const kinds = directory.viewOf(asker).names.map(({ kind }) => LOCAL_SOURCES[kind].key);
  const [first] = kinds;
  assert.equal(first, "rule");
  const from = (key: (typeof kinds)[number]): number => kinds.lastIndexOf(key);
  const order = ["rule", "network", "kubernetes", "etcd", "extra", "stopped"] as const;
  const places = order.map((key) => from(key));
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  );
  assert.ok(!places.includes(-1), kinds.join(" "));
});
