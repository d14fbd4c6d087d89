// Objects as nobody should write them: whoever may create a Service may write most of its fields.

import assert from "node:assert/strict";
import { test } from "node:test";

import { KUBERNETES_LIMITS } from "../../../src/features/kubernetes/limits.ts";
import { CLUSTER, clusterIp, headless, service, slice } from "./cluster-objects.ts";
import { ClusterWorld } from "./clustered.ts";

const GOOD = ["kubernetes.default.svc.cluster.local", [0, "A 10.3.0.1"]] as const;

for (const [what, object] of [
  ["no object", 1],
  ["null", null],
  ["a list", []],
  ["no metadata", { kind: "Service" }],
  ["metadata that is a text", { kind: "Service", metadata: "x" }],
  [
    "a name with a dot",
    clusterIp("x.default", []) && { kind: "Service", metadata: { namespace: "default", name: "a.b" } },
  ],
  ["a name in upper case", { kind: "Service", metadata: { namespace: "default", name: "UPPER" } }],
  ["a long namespace", { kind: "Service", metadata: { namespace: "n".repeat(64), name: "x" } }],
  ["an external name that is none", service("x.default", { type: "ExternalName", externalName: "..".repeat(200) })],
  ["no external name", service("x.default", { type: "ExternalName" })],
  ["a slice with a name that is none", { kind: "EndpointSlice", metadata: { namespace: "default", name: "/" } }],
] as const) {
  test(`it is left out and counted: ${what}`, () => {
    const world = new ClusterWorld([...CLUSTER, object]);
    assert.equal(world.names.report.skipped, 1);
    assert.deepEqual(world.ask(GOOD[0]), GOOD[1]);
    assert.equal(world.names.report.services, CLUSTER.filter(({ kind }) => kind === "Service").length);
  });
}

test("what is not valid in an object is left out of it", () => {
  const world = new ClusterWorld([
    service("x.default", {
      clusterIPs: ["10.0.0.1", "fe80::1%eth0", "ten", 5, null],
      ports: [{ name: "ok", port: 80 }, { name: "bad", port: 0 }, { port: "80" }, null, { name: 5, port: 81 }],
    }),
    headless("y.default"),
    {
      ...slice("y.default", { endpoints: [{ addresses: ["10.0.0.2"] }] }),
      endpoints: [
        null,
        {},
        { addresses: "10.0.0.3" },
        { addresses: ["x"] },
        { addresses: ["10.0.0.2"], hostname: "No.Host" },
      ],
    },
  ]);
  assert.deepEqual(world.ask("x.default.svc.cluster.local"), [0, "A 10.0.0.1"]);
  assert.deepEqual(world.ask("_ok._tcp.x.default.svc.cluster.local", "SRV"), [
    0,
    "SRV 0 100 80 x.default.svc.cluster.local",
  ]);
  assert.deepEqual(world.ask("_bad._tcp.x.default.svc.cluster.local", "SRV"), [3]);
  assert.deepEqual(world.ask("y.default.svc.cluster.local"), [0, "A 10.0.0.2"]);
  assert.deepEqual(world.ask("10-0-0-2.y.default.svc.cluster.local"), [0, "A 10.0.0.2"]);
  assert.equal(world.names.report.skipped, 0);
});

test("a bad change takes an object's names away, and a good one brings them back", () => {
  const world = new ClusterWorld(CLUSTER);
  world.put(service("foo.default", { type: "ExternalName", externalName: "" }));
  assert.deepEqual(world.ask("foo.default.svc.cluster.local", "CNAME"), [3]);
  assert.match(world.names.report.problems[0]?.key ?? "", /^Service default\/foo$/);
  world.put(service("foo.default", { type: "ExternalName", externalName: "a.example" }));
  assert.deepEqual(world.ask("foo.default.svc.cluster.local", "CNAME"), [0, "CNAME a.example"]);
  assert.equal(world.names.report.skipped, 0);
});

test("what was not valid and is gone when everything is listed again is not reported any more", () => {
  const world = new ClusterWorld([...CLUSTER, service("foo.default", { type: "ExternalName", externalName: "" })]);
  assert.equal(world.names.report.skipped, 1);
  world.list(CLUSTER);
  assert.deepEqual([world.names.report.skipped, world.names.report.problems], [0, []]);
});

test("external names in a loop fail, and their number in a row is bounded", () => {
  const to = (name: string): object => ({ type: "ExternalName", externalName: `${name}.default.svc.cluster.local` });
  const world = new ClusterWorld([
    service("a.default", { ...to("b") }),
    service("b.default", { ...to("a") }),
    service("self.default", { ...to("self") }),
  ]);
  for (const name of ["a", "self"]) assert.equal(world.ask(`${name}.default.svc.cluster.local`)[0], 2, name);
});

test("one service with very many endpoints has a bounded answer, and endpoints in all are bounded", () => {
  const endpoints = Array.from({ length: KUBERNETES_LIMITS.sliceEndpoints + 5 }, (_, n) => ({
    addresses: [`10.9.${n >> 8}.${n & 255}`],
  }));
  const world = new ClusterWorld([headless("many.default"), slice("many.default", { endpoints })]);
  assert.equal(world.names.report.endpoints, KUBERNETES_LIMITS.sliceEndpoints);
  assert.equal(world.ask("many.default.svc.cluster.local").length - 1, KUBERNETES_LIMITS.answerRecords);
  const full = new ClusterWorld(undefined);
  full.names.slices.begin();
  const needed = KUBERNETES_LIMITS.endpoints / KUBERNETES_LIMITS.sliceEndpoints;
  for (let n = 0; n < needed + 2; n++) full.put(slice("many.default", { endpoints, slice: `s${n}` }));
  assert.equal(full.names.slices.isFull, true);
  full.names.slices.commit(7);
  assert.deepEqual([full.names.report.endpoints, full.names.report.refused], [KUBERNETES_LIMITS.endpoints, 9]);
  for (let times = 0; times < 3; times++) full.put(slice("many.default", { endpoints, slice: "late" }));
  assert.equal(full.names.report.refused, 9, "one that changes is not counted again");
  // What is there may still change.
  full.put(slice("many.default", { endpoints: endpoints.slice(0, 1), slice: "s0" }));
  assert.equal(full.names.report.endpoints, KUBERNETES_LIMITS.endpoints - KUBERNETES_LIMITS.sliceEndpoints + 1);
});
