/**
 * Any feature can be taken out: without its folder, its tests and its line in the list, everything is built, and all unit tests pass.
 * Without any, dns11 is Docker's resolver: what it answers in strict mode is compared again, a cached answer is asked for, and it hands over.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";

import { inTurn } from "../support/engine/suite.ts";
import { Without } from "../support/program/without.ts";

const FEATURES = readdirSync("src/features", { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

async function pass(features: readonly string[], words: readonly string[]): Promise<void> {
  using copy = await Without.built(features);
  let output = "";
  const code = await copy.test(words, (text) => void (output += text));
  assert.equal(code, 0, output.slice(-20_000));
  assert.match(output, /^ℹ pass [1-9]/m);
}

for (const feature of inTurn(FEATURES)) test(`without ${feature}`, async () => await pass([feature], ["unit/"]));

test("without any, it answers as Docker does, forwards and caches, and hands over", async () => {
  await pass(FEATURES, ["docker/differential.", "docker/cache.", "docker/handover."]);
});
