// Proves the settings of nodes: which values are accepted, how their filters are parsed and formatted, and what they contradict.

import assert from "node:assert/strict";
import { test } from "node:test";

import { readSettings } from "../../../src/config/file/settings-file.ts";
import { readEnvironment } from "../../../src/config/layers.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { KIND, NODE_FILTER, type NodeFilter, kindOf, nestedOf } from "../../../src/features/kind/feature.ts";

const NESTED = KIND.settings.nested.kind;

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
    if (expected === undefined)
      return assert.throws(() => NODE_FILTER.read(text), /invalid node filter .*: use auto, label=KEY,/);
    assert.deepEqual(NODE_FILTER.read(text), expected);
    assert.equal(NODE_FILTER.write?.(expected), text);
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
    if (problem === undefined) assert.equal(KIND.settings["kind.ip"].kind.read(text), text);
    else assert.throws(() => KIND.settings["kind.ip"].kind.read(text), problem);
  });
}

test("every setting is read from the file, and from the environment", () => {
  const values = {
    "kind.nodes": [{ kind: "auto" }, { kind: "name", pattern: "k3d-*" }],
    "kind.ip": "node",
    "kind.mode": "loopback",
    "kind.families": "both",
    "kind.expose": true,
    "kind.force": true,
    "kind.host-docker-internal": "forward",
  };
  const text =
    "kind: {nodes: [auto, name=k3d-*], ip: node, mode: loopback, families: both, expose: true, force: true, host-docker-internal: forward}";
  assert.deepEqual(readSettings(Buffer.from(`version: 1\n${text}\n`), "f").values, values);
  const environment = {
    DNS11_KIND_NODES: "auto, name=k3d-*",
    DNS11_KIND_IP: "node",
    DNS11_KIND_MODE: "loopback",
    DNS11_KIND_FAMILIES: "both",
    DNS11_KIND_EXPOSE: "on",
    DNS11_KIND_FORCE: "yes",
    DNS11_KIND_HOST_DOCKER_INTERNAL: "forward",
  };
  assert.deepEqual(readEnvironment(environment).values, values);
});

test("nested containers are chosen by name or label; nothing says by itself which they are", () => {
  assert.deepEqual(NESTED.read(["name=dind*", "label=ci"]), [
    { kind: "name", pattern: "dind*" },
    { kind: "label", key: "ci", value: undefined },
  ]);
  assert.deepEqual(nestedOf(mergeSettings([])).nodes, []);
  for (const text of ["auto", "dind", "name=", 3])
    assert.throws(() => NESTED.read([text]), /use name=PATTERN, label=KEY or label=KEY=VALUE|Error|text/, String(text));
});

test("a zone that hides the domain of KIND clusters is a conflict where their nodes are served", () => {
  const settingsOf = (zone: string): ReturnType<typeof mergeSettings> =>
    mergeSettings([readEnvironment({ DNS11_ZONE: zone, DNS11_KIND_NODES: "auto" })]);
  assert.throws(
    () => settingsOf("cluster.local"),
    /DNS11_ZONE: zone "cluster\.local" would hide the domain of KIND clusters \(cluster\.local\) in their nodes: use another zone/,
  );
  assert.deepEqual(kindOf(settingsOf("x.test")).nodes, [{ kind: "auto" }]);
});
