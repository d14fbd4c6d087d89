// Proves which addresses programs on the host get below a zone, and what `dns11 status` says of zones.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Status } from "../../../src/api/status.ts";
import type { MemberEndpoint, ZoneMember } from "../../../src/container/names/services/member.ts";
import { reachableFromHost } from "../../../src/features/zones/reachable.ts";
import { statusLines } from "../../../src/features/zones/report.ts";
import { anEndpoint } from "../../support/scripted/builders.ts";

test("the host is told the addresses that it can reach, and no others", () => {
  const [v4, v6] = [[Uint8Array.of(172, 20, 0, 2)], [new Uint8Array(16).fill(1)]];
  const on = (networkId: string): MemberEndpoint => ({ networkId, v4, v6 });
  const member: ZoneMember = {
    ...{ id: "web", project: "shop", service: "web", hosts: ["1"], ports: [], isReady: true },
    endpoints: [on("bridged"), on("macvlan")],
  };
  const reachable = [anEndpoint({ networkId: "bridged", ipv4: "172.20.0.2", ipv6: undefined })];
  const reach = reachableFromHost((id) => (id === "web" ? reachable : []));
  assert.deepEqual(reach.all(member), { v4, v6: [] });
  assert.equal(reach.sees(member), true);
  assert.equal(reach.sees({ ...member, id: "other" }), false);
});

test("the status has the zones, where there are any", () => {
  const linesOf = (value: unknown): unknown =>
    statusLines({ settings: { zone: { value, source: "flag" } } } as unknown as Status);
  assert.deepEqual(linesOf(["cluster.local", "docker.test"]), [{ label: "zones", text: "cluster.local, docker.test" }]);
  assert.deepEqual(linesOf([]), []);
});
