// Tests which containers are KIND nodes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ignoredNodeLabel, isNode, isSelected } from "../../../src/features/kind/selection.ts";
import type { NodeFilter } from "../../../src/features/kind/feature.ts";
import { LABEL_DEFAULTS } from "../../../src/base/model/name-choices.ts";
import { aContainer } from "../../support/scripted/builders.ts";

const AUTO: readonly NodeFilter[] = [{ kind: "auto" }];
const CLUSTER = { "io.x-k8s.kind.cluster": "kind" };
const K3D = { app: "k3d", "k3d.cluster": "dev" };
const MINIKUBE = { "created_by.minikube.sigs.k8s.io": "true", "name.minikube.sigs.k8s.io": "minikube" };
const BALANCER = { ...CLUSTER, "io.x-k8s.kind.role": "external-load-balancer" };

const CASES: readonly (readonly [string, Readonly<Record<string, string>>, readonly NodeFilter[], boolean])[] = [
  ["without filters, a container with all labels", { ...CLUSTER, "io.dns11.kind": "true" }, [], false],
  ["a container of a cluster", CLUSTER, AUTO, true],
  ["any other container", {}, AUTO, false],
  ["a server of k3d", { ...K3D, "k3d.role": "server" }, AUTO, true],
  ["an agent of k3d", { ...K3D, "k3d.role": "agent" }, AUTO, true],
  ["the load balancer of k3d", { ...K3D, "k3d.role": "loadbalancer" }, AUTO, false],
  ["a registry of k3d", { ...K3D, "k3d.role": "registry" }, AUTO, false],
  ["the helper with which k3d starts a cluster", { ...K3D, "k3d.role": "noRole" }, AUTO, false],
  ["a node of minikube", { ...MINIKUBE, "role.minikube.sigs.k8s.io": "" }, AUTO, true],
  ["the helper with which minikube unpacks its images", MINIKUBE, AUTO, false],
  ["the load balancer of a cluster", BALANCER, AUTO, false],
  ["a load balancer whose own label says that it is a node", { ...BALANCER, "io.dns11.kind": "true" }, AUTO, true],
  ["a node whose own label says that it is not", { ...CLUSTER, "io.dns11.kind": " FALSE" }, AUTO, false],
  ["a node whose own label is invalid", { ...CLUSTER, "io.dns11.kind": "maybe" }, AUTO, true],
  ["a container with the label", { "k3d.role": "agent" }, [{ kind: "label", key: "k3d.role", value: undefined }], true],
  ["a container with another value of the label", { tier: "a" }, [{ kind: "label", key: "tier", value: "b" }], false],
  [
    "k3d's load balancer",
    { "k3d.role": "loadbalancer" },
    [{ kind: "label", key: "k3d.role", value: undefined }],
    false,
  ],
  [
    "a container without the label, which is a property of every object,",
    {},
    [{ kind: "label", key: "toString", value: undefined }],
    false,
  ],
  ["a container whose name matches the pattern", {}, [{ kind: "name", pattern: "my-*-worker*" }], true],
  ["a container whose name only starts with the pattern", {}, [{ kind: "name", pattern: "my-" }], false],
  ["a container whose name differs where the pattern has a dot", {}, [{ kind: "name", pattern: "my.one*" }], false],
  ["a container that matches the second of two filters", {}, [...AUTO, { kind: "name", pattern: "*worker2" }], true],
];

for (const [what, labels, filters, expected] of CASES) {
  test(`${what} is ${expected ? "" : "not "}a node`, () => {
    assert.equal(isNode(aContainer({ name: "my-one-worker2", labels }), filters), expected);
  });
}

// The image's labels, the filters, whether its container is a node by default, and the label that the warning names.
for (const [labels, filters, isNodeByDefault, warned] of [
  [CLUSTER, AUTO, false, "io.x-k8s.kind.cluster"],
  [{ ...CLUSTER, "io.dns11.kind": "true" }, AUTO, false, "io.dns11.kind"],
  [{ "io.dns11.kind": "true" }, [{ kind: "name", pattern: "nobody" }], false, "io.dns11.kind"],
  [{ "k3d.role": "agent" }, [{ kind: "label", key: "k3d.role", value: undefined }], false, "k3d.role"],
  [{ "io.dns11.kind": "false" }, [{ kind: "name", pattern: "*" }], true, "io.dns11.kind"],
  [CLUSTER, [{ kind: "name", pattern: "*" }], true, undefined],
  [CLUSTER, [], false, undefined],
  [{ colour: "blue" }, AUTO, false, undefined],
] as const) {
  test(`an image's ${JSON.stringify(labels)} applies to ${JSON.stringify(filters)} only if images are trusted`, () => {
    const fact = aContainer({ imageLabels: { labels, source: "known" } });
    assert.equal(isNode(fact, filters), isNodeByDefault);
    const ignored = ignoredNodeLabel(fact, filters, LABEL_DEFAULTS);
    assert.equal(/^label (\S+) of the image is ignored/.exec(ignored ?? "")?.[1], warned);
    const trusted = { ...LABEL_DEFAULTS, trustsImages: true };
    assert.equal(isNode(fact, filters, trusted), isNodeByDefault !== (warned !== undefined));
    assert.equal(ignoredNodeLabel(fact, filters, trusted), undefined);
  });
}

test("what is chosen as nested is chosen by its filter alone", () => {
  const filters = [{ kind: "name", pattern: "dind*" }] as const;
  const named = (name: string, labels: Readonly<Record<string, string>> = {}): boolean =>
    isSelected(aContainer({ name, labels }), filters);
  assert.deepEqual([named("dind-1"), named("other")], [true, false]);
  assert.equal(named("dind", { "io.dns11.kind": "false" }), true);
  assert.equal(named("other", { "io.dns11.kind": "true" }), false);
});
