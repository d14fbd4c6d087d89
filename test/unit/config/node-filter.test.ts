// Proves that the filters of --kind are parsed and formatted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nodeFilterText, parseNodeFilter } from "../../../src/config/kinds.ts";
import { SETTINGS } from "../../../src/config/keys.ts";
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
  test(`${JSON.stringify(text)} is ${expected === undefined ? "invalid" : JSON.stringify(expected)}`, () => {
    assert.deepEqual(parseNodeFilter(text), expected);
    if (expected !== undefined) assert.equal(nodeFilterText(expected), text);
  });
}

for (const [text, problem] of [
  ["auto", undefined],
  ["gateway", undefined],
  ["169.254.53.53", undefined],
  ["fd00::53", undefined],
  ["gatewy", /invalid value "gatewy": use one of auto, gateway, node, host or an IP address/],
  ["fe80::1%eth0", /use one of .* or an IP address/],
  ["127.0.0.11", /a loopback address cannot be reached from pods/],
  ["::1", /a loopback address/],
  ["0.0.0.0", /a loopback address/],
] as const) {
  test(`kind.ip: ${text} is ${problem === undefined ? "accepted" : "rejected, with a reason"}`, () => {
    if (problem === undefined) assert.equal(SETTINGS["kind.ip"].kind.read(text), text);
    else assert.throws(() => SETTINGS["kind.ip"].kind.read(text), problem);
  });
}
