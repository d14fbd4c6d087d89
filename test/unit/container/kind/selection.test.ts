// Proves which containers are KIND nodes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ignoredNodeLabel, isNode } from "../../../../src/container/kind/selection.ts";
import type { NodeFilter } from "../../../../src/base/model/kind-policy.ts";
import { LABEL_DEFAULTS } from "../../../../src/base/model/label-policy.ts";
import { aContainer } from "../../../support/scripted/builders.ts";

const AUTO: readonly NodeFilter[] = [{ kind: "auto" }];
const CLUSTER = { "io.x-k8s.kind.cluster": "kind" };
const BALANCER = { ...CLUSTER, "io.x-k8s.kind.role": "external-load-balancer" };

const CASES: readonly (readonly [string, Readonly<Record<string, string>>, readonly NodeFilter[], boolean])[] = [
  ["nobody, where nodes are not looked for", { ...CLUSTER, "io.dns11.kind": "true" }, [], false],
  ["a container of a cluster", CLUSTER, AUTO, true],
  ["any other container", {}, AUTO, false],
  ["the load balancer of a cluster", BALANCER, AUTO, false],
  ["a load balancer that says it is one", { ...BALANCER, "io.dns11.kind": "true" }, AUTO, true],
  ["a node that says it is none", { ...CLUSTER, "io.dns11.kind": " FALSE" }, AUTO, false],
  ["a node that says what nobody understands", { ...CLUSTER, "io.dns11.kind": "maybe" }, AUTO, true],
  ["a label's holder", { "k3d.role": "agent" }, [{ kind: "label", key: "k3d.role", value: undefined }], true],
  ["a label's holder with another value", { tier: "a" }, [{ kind: "label", key: "tier", value: "b" }], false],
  [
    "k3d's load balancer",
    { "k3d.role": "loadbalancer" },
    [{ kind: "label", key: "k3d.role", value: undefined }],
    false,
  ],
  ["what is inherited by every object", {}, [{ kind: "label", key: "toString", value: undefined }], false],
  ["a name of the pattern", {}, [{ kind: "name", pattern: "my-*-worker*" }], true],
  ["a name that only begins so", {}, [{ kind: "name", pattern: "my-" }], false],
  ["a pattern whose dot is a dot", {}, [{ kind: "name", pattern: "my.one*" }], false],
  ["the second of two filters", {}, [...AUTO, { kind: "name", pattern: "*worker2" }], true],
];

for (const [who, labels, filters, expected] of CASES) {
  test(`${who} is ${expected ? "" : "not "}a node`, () => {
    assert.equal(isNode(aContainer({ name: "my-one-worker2", labels }), filters), expected);
  });
}

// What an image says, the filters, whether its container is a node by default, and which label is told not to count.
for (const [labels, filters, isIt, told] of [
  [CLUSTER, AUTO, false, "io.x-k8s.kind.cluster"],
  [{ ...CLUSTER, "io.dns11.kind": "true" }, AUTO, false, "io.dns11.kind"],
  [{ "io.dns11.kind": "true" }, [{ kind: "name", pattern: "nobody" }], false, "io.dns11.kind"],
  [{ "k3d.role": "agent" }, [{ kind: "label", key: "k3d.role", value: undefined }], false, "k3d.role"],
  [{ "io.dns11.kind": "false" }, [{ kind: "name", pattern: "*" }], true, "io.dns11.kind"],
  [CLUSTER, [{ kind: "name", pattern: "*" }], true, undefined],
  [CLUSTER, [], false, undefined],
  [{ colour: "blue" }, AUTO, false, undefined],
] as const) {
  test(`an image's ${JSON.stringify(labels)} counts for ${JSON.stringify(filters)} only where images are trusted`, () => {
    const fact = aContainer({ imageLabels: { labels, source: "known" } });
    assert.equal(isNode(fact, filters), isIt);
    const ignored = ignoredNodeLabel(fact, filters, LABEL_DEFAULTS);
    assert.equal(/^label (\S+) of the image is ignored/.exec(ignored ?? "")?.[1], told);
    const trusted = { ...LABEL_DEFAULTS, trustsImages: true };
    assert.equal(isNode(fact, filters, trusted), isIt !== (told !== undefined));
    assert.equal(ignoredNodeLabel(fact, filters, trusted), undefined);
  });
}
