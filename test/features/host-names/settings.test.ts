// Proves the settings of names on the host: which domains are accepted, and that one without host names is a mistake.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HOST_DOMAIN } from "../../../src/config/kinds.ts";
import { SETTINGS } from "../../../src/config/keys.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { type LayerValues, readEnvironment } from "../../../src/config/layers.ts";
import { hostPolicyOf } from "../../../src/features/host-names/feature.ts";

function settingsOf(values: LayerValues, env: Record<string, string> = {}): ReturnType<typeof mergeSettings> {
  return mergeSettings([{ source: "file", values, where: (key) => key }, readEnvironment(env)]);
}

test("a domain is lower-cased and loses its dots at the ends", () => {
  assert.equal(HOST_DOMAIN.read("Docker."), "docker");
  assert.equal(HOST_DOMAIN.read(".containers.internal"), "containers.internal");
});

test("a domain with a meaning of its own, an invalid and a very long one are refused", () => {
  for (const domain of ["local", "my.local", "localhost", "arpa", "in-addr.arpa", "invalid", "x.onion"])
    assert.throws(() => HOST_DOMAIN.read(domain), /without a meaning of its own, such as docker/, domain);
  for (const domain of ["", ".", `${"a".repeat(60)}.${"b".repeat(60)}`])
    assert.throws(() => HOST_DOMAIN.read(domain), /domain name of at most 100 characters/, domain);
  for (const domain of ["a b", "a..b", 7, null]) assert.throws(() => HOST_DOMAIN.read(domain), Error);
});

test("host names are off by default, have the zones, and a domain alone is a mistake", () => {
  assert.deepEqual(hostPolicyOf(settingsOf({})), { means: "off", domain: "docker", zones: [] });
  const box = { "host-names": "capture", "host-domain": "box" } as const;
  assert.deepEqual(hostPolicyOf(settingsOf(box, { DNS11_ZONE: "cluster.local" })), {
    means: "capture",
    domain: "box",
    zones: ["cluster.local"],
  });
  assert.throws(() => settingsOf({ "host-domain": "box" }), /host-domain: has no effect with host-names: off/);
});

test("a zone that overlaps the domain is a conflict while host names are on", () => {
  const env = { DNS11_ZONE: "svc.docker" };
  assert.throws(
    () => settingsOf({ "host-names": "capture" }, env),
    /DNS11_ZONE: zone "svc\.docker" overlaps host-domain "docker": change one of them/,
  );
  assert.deepEqual(settingsOf({}, env).zones, ["svc.docker"]);
});

test("so is one of a feature that answers zones", () => {
  const each = [
    { "etcd.endpoints": ["http://10.0.0.5:2379"], "etcd.zones": ["box"] },
    { "kubernetes.api": "/k8s.conf", "kubernetes.zone": "svc.box" },
  ];
  for (const values of each.filter((one) => Object.keys(one).every((key) => Object.hasOwn(SETTINGS, key)))) {
    const all = { ...values, "host-names": "auto", "host-domain": "box" } as LayerValues;
    assert.throws(
      () => settingsOf(all),
      /(?:etcd\.zones|kubernetes\.zone): "(?:svc\.)?box" overlaps host-domain "box"/,
    );
  }
});
