// Proves how labels are split into the creator's and the image's, and the warning for an ignored one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { effectiveLabels, ignoredLabelWarning, splitLabels } from "../../../../src/container/facts/labels.ts";
import { LABEL_DEFAULTS } from "../../../../src/base/model/name-choices.ts";

const TRUSTED = { ...LABEL_DEFAULTS, trustsImages: true };
const MERGED = { both: "same", changed: "new", added: "x", empty: "" };
const IMAGE = { both: "same", changed: "old", removed: "y", empty: "" };

test("a label that the image has with the same value is the image's, all others are the creator's", () => {
  assert.deepEqual(splitLabels(MERGED, IMAGE), {
    labels: { changed: "new", added: "x" },
    imageLabels: { labels: { both: "same", empty: "" }, source: "known" },
  });
});

for (const [image, source] of [
  [undefined, "unknown"],
  ["awaited", "awaited"],
] as const) {
  test(`while the image is ${source} everything counts as the image's`, () => {
    assert.deepEqual(splitLabels(MERGED, image), { labels: {}, imageLabels: { labels: MERGED, source } });
  });
}

test("labels that Compose puts into its images are the creator's in the containers that it creates", () => {
  const key = (name: string): string => `com.docker.compose.${name}`;
  const built = { [key("project")]: "shop", [key("service")]: "web", [key("version")]: "2", [key("other")]: "x" };
  const { labels } = splitLabels({ ...built, [key("config-hash")]: "h" }, built);
  const { [key("other")]: _, ...given } = built;
  assert.deepEqual(labels, { ...given, [key("config-hash")]: "h" });
  // An image can have the labels that Compose sets on containers, without passing for Compose.
  const forged = { ...built, [key("config-hash")]: "h" };
  assert.deepEqual(splitLabels(forged, forged).labels, {});
  assert.deepEqual(splitLabels(built, built).labels, {});
});

test("keys of Object.prototype are labels like any other", () => {
  const merged = JSON.parse('{"__proto__": "x", "constructor": "y"}') as Record<string, string>;
  const { labels, imageLabels } = splitLabels(merged, {});
  assert.deepEqual(Object.entries(labels), Object.entries(merged));
  assert.deepEqual(imageLabels.labels, {});
  assert.deepEqual(splitLabels(merged, merged).labels, {});
});

test("the image's labels apply if images are trusted, after those of the creator", () => {
  const split = splitLabels(MERGED, IMAGE);
  assert.deepEqual(effectiveLabels(split, LABEL_DEFAULTS), split.labels);
  assert.deepEqual(effectiveLabels(split, TRUSTED), MERGED);
  assert.deepEqual(effectiveLabels(splitLabels(MERGED, undefined), TRUSTED), MERGED);
});

test("an ignored label causes a warning with reason and remedy; one that applies or is missing does not", () => {
  const split = splitLabels(MERGED, IMAGE);
  assert.match(
    ignoredLabelWarning("both", split, LABEL_DEFAULTS) ?? "",
    /^label both of the image is ignored, .*trust-image-labels: true$/,
  );
  assert.match(
    ignoredLabelWarning("added", splitLabels(MERGED, undefined), LABEL_DEFAULTS) ?? "",
    /^label added is ignored, because its image cannot be inspected, or has too many labels, .*trust-image-labels: true$/,
  );
  assert.equal(ignoredLabelWarning("added", split, LABEL_DEFAULTS), undefined);
  assert.equal(ignoredLabelWarning("toString", split, LABEL_DEFAULTS), undefined);
  assert.equal(ignoredLabelWarning("both", split, TRUSTED), undefined);
});
