// Proves the reading of --kind, and that it is written as it was read.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nodeFilterText, parseNodeFilter } from "../../../src/config/node-filter.ts";
import { READERS } from "../../../src/config/readers.ts";
import type { NodeFilter } from "../../../src/base/model/kind-policy.ts";

const FORMS: readonly (readonly [string, NodeFilter | undefined])[] = [
  ["auto", { kind: "auto" }],
  ["label=k3d.role", { kind: "label", key: "k3d.role", value: undefined }],
  ["label=k3d.role=agent", { kind: "label", key: "k3d.role", value: "agent" }],
  ["label=a=b=c", { kind: "label", key: "a", value: "b=c" }],
  ["name=my-*", { kind: "name", pattern: "my-*" }],
  ["name=", undefined],
  ["label=", undefined],
  ["label==b", undefined],
  ["Auto", undefined],
  ["network=kind", undefined],
  ["", undefined],
];

for (const [text, expected] of FORMS) {
  test(`${JSON.stringify(text)} is ${expected === undefined ? "no filter" : JSON.stringify(expected)}`, () => {
    assert.deepEqual(parseNodeFilter(text), expected);
    if (expected !== undefined) assert.equal(nodeFilterText(expected), text);
  });
}

for (const [text, problem] of [
  ["auto", undefined],
  ["gateway", undefined],
  ["169.254.53.53", undefined],
  ["fd00::53", undefined],
  ["gatewy", /"gatewy" is neither auto, gateway, node, host nor an IP address/],
  ["fe80::1%eth0", /neither .* nor an IP address/],
  ["127.0.0.11", /is a loopback address, which pods cannot reach/],
  ["::1", /is a loopback address/],
  ["0.0.0.0", /is a loopback address/],
] as const) {
  test(`kind.ip: ${text} is ${problem === undefined ? "taken" : "refused, with a reason"}`, () => {
    if (problem === undefined) assert.equal(READERS["kind.ip"](text), text);
    else assert.throws(() => READERS["kind.ip"](text), problem);
  });
}
