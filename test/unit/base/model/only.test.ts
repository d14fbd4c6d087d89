// Proves the parsing of --only.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type OnlyFilter, parseOnly } from "../../../../src/base/model/container-choice.ts";

const FORMS: readonly (readonly [string, OnlyFilter | undefined])[] = [
  ["label=tier", { kind: "label", key: "tier", value: undefined }],
  ["label=tier=web", { kind: "label", key: "tier", value: "web" }],
  ["label=tier=", { kind: "label", key: "tier", value: "" }],
  ["label=tier=a=b", { kind: "label", key: "tier", value: "a=b" }],
  ["label=tier=a\nb", { kind: "label", key: "tier", value: "a\nb" }],
  ["network=one", { kind: "network", name: "one" }],
  ["network=a=b", { kind: "network", name: "a=b" }],
  ["label==web", undefined],
  ["label=", undefined],
  ["label", undefined],
  ["network=", undefined],
  ["LABEL=tier", undefined],
  ["name=web", undefined],
  [" label=tier", undefined],
  ["", undefined],
];

for (const [text, expected] of FORMS) {
  test(`parseOnly(${JSON.stringify(text)}) is ${expected === undefined ? "neither form" : JSON.stringify(expected)}`, () => {
    assert.deepEqual(parseOnly(text), expected);
  });
}
