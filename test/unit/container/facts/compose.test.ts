// Proves that a container's place in a Compose project comes from its creator: an image cannot claim one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { composeServiceOf } from "../../../../src/container/facts/compose.ts";
import { splitLabels } from "../../../../src/container/facts/labels.ts";

const PLACE = { "com.docker.compose.project": "shop", "com.docker.compose.service": "db" };
const EXPECTED = { project: "shop", service: "db", file: null, files: [], folder: undefined, isOneOff: false };

test("the creator's labels count, also those that Compose gives its images, too", () => {
  assert.deepEqual(composeServiceOf(splitLabels(PLACE, {})), { ...EXPECTED, configHash: undefined });
  const built = { ...PLACE, "com.docker.compose.config-hash": "1" };
  assert.deepEqual(composeServiceOf(splitLabels(built, PLACE)), { ...EXPECTED, configHash: "1" });
});

test("labels that are the image's, or may be, do not count", () => {
  assert.equal(composeServiceOf(splitLabels(PLACE, PLACE)), undefined);
  for (const image of ["awaited", undefined] as const)
    assert.equal(composeServiceOf(splitLabels(PLACE, image)), undefined);
});

test("half a place is none", () => {
  assert.equal(composeServiceOf(splitLabels({ "com.docker.compose.service": "db" }, {})), undefined);
  assert.equal(composeServiceOf(splitLabels({ ...PLACE, "com.docker.compose.project": "" }, {})), undefined);
});
