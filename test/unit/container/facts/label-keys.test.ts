// Proves that every label that some code reads is kept of what the engine says.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { COMPOSE_LABEL } from "../../../../src/base/model/compose.ts";
import { LabelKeys } from "../../../../src/container/facts/label-keys.ts";

const LITERAL = String.raw`"(io\.dns11\.[a-z-]+|io\.x-k8s\.[a-z.]+|k3d\.[a-z]+|[a-z.]+\.minikube\.sigs\.k8s\.io)"`;

test("the labels that the code names, and those of Compose, are kept", () => {
  const found = execFileSync("grep", ["-rhoE", LITERAL, "src"], { encoding: "utf8" }).trim().split("\n");
  const named = new Set(found.map((text) => text.slice(1, -1)));
  assert.ok(named.size >= 18, [...named].join(" "));
  const keys = new LabelKeys();
  for (const key of [...named, ...Object.values(COMPOSE_LABEL)]) assert.ok(keys.has(key), key);
  assert.equal(keys.has("team"), false);
});

test("further keys are kept from when they are added, up to a limit", () => {
  const keys = new LabelKeys();
  assert.equal(keys.add(["team", "io.dns11.enable"]), true);
  assert.equal(keys.add(["team"]), false);
  assert.deepEqual([keys.has("team"), keys.generation], [true, 1]);
  const many = Array.from({ length: 300 }, (_, index) => `key${index}`);
  assert.throws(() => keys.add(many), /different labels/);
  assert.deepEqual([keys.has("key0"), keys.generation], [false, 1]);
});
