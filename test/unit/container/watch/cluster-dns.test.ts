// Proves which address is read from a kubelet's settings, in the forms in which programs write them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { clusterDnsIn } from "../../../../src/container/watch/cluster-dns.ts";

for (const [what, text, expected] of [
  ["kubeadm", "cgroupDriver: systemd\nclusterDNS:\n- 10.96.0.10\nclusterDomain: cluster.local\n", "10.96.0.10"],
  ["both families", "clusterDNS:\n  - fd00:10:96::a\n  - 10.96.0.10\n", "fd00:10:96::a"],
  ["one line", 'clusterDNS: ["10.96.0.10"]\n', "10.96.0.10"],
  ["the last line", "clusterDNS:\n- 10.96.0.10", "10.96.0.10"],
  ["none", "clusterDNS: []\nevictionHard:\n- 10.96.0.10\n", undefined],
  ["a name", "clusterDNS:\n- dns.example\n", undefined],
  ["another key", "otherclusterDNS:\n- 10.96.0.10\n", undefined],
  ["no file", "", undefined],
] as const)
  test(what, () => assert.equal(clusterDnsIn(text), expected));

test("a long text takes no long time", () => {
  assert.equal(clusterDnsIn(`clusterDNS:\n${"- a\n".repeat(16_000)}`), undefined);
  assert.equal(clusterDnsIn(`clusterDNS:\n${"- \t".repeat(20_000)}`), undefined);
});
