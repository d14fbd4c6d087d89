// Proves which zones are accepted, alone, together, and beside other settings, and that there is none by default.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type LayerValues, readEnvironment } from "../../../src/config/layers.ts";
import { readSettings } from "../../../src/config/file/settings-file.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { ZONES } from "../../../src/features/zones/feature.ts";

function settingsOf(values: LayerValues): ReturnType<typeof mergeSettings> {
  return mergeSettings([{ source: "file", values, where: (key) => `s.yaml: ${key}` }]);
}

function zonesIn(text: string): readonly string[] | undefined {
  return readSettings(Buffer.from(`version: 1\n${text}\n`), "s.yaml").values.zone;
}

const zoneOf = (value: unknown): unknown => ZONES.settings.zone.each?.read(value);

test("there is no zone by default; the file has one or a list, the environment a list", () => {
  assert.deepEqual(settingsOf({}).zones, []);
  assert.deepEqual(zonesIn("zone: Cluster.Local."), ["cluster.local"]);
  assert.deepEqual(zonesIn("zone: [cluster.local, docker.test]"), ["cluster.local", "docker.test"]);
  assert.deepEqual(readEnvironment({ DNS11_ZONE: "cluster.local, docker.test" }).values.zone, [
    "cluster.local",
    "docker.test",
  ]);
});

test("private domains and domains of one's own are accepted", () => {
  for (const zone of ["cluster.local", "internal", "docker.test", "test", "shop.example.com", "k8s.co.uk"])
    assert.equal(zoneOf(zone), zone);
});

test("a zone that hides a public domain is refused, with what to use", () => {
  for (const zone of ["com", "dev", "docker", "co.uk", "com.au"])
    assert.throws(
      () => zoneOf(zone),
      new RegExp(`invalid zone "${zone}": use a domain that is yours, such as docker\\.${zone}, because`),
    );
});

test("a zone with a meaning of its own, and one that is no domain name, are refused", () => {
  for (const zone of ["local", "localhost", "x.localhost", "10.in-addr.arpa", "x.onion", "invalid"])
    assert.throws(() => zoneOf(zone), /use a domain without a meaning of its own, such as cluster\.local/, zone);
  for (const zone of ["", ".", "a b", "a..b", "*.test", ".test", `${"a".repeat(60)}.${"b".repeat(60)}`])
    assert.throws(() => zoneOf(zone), /use a domain name of at most 100 characters, such as cluster\.local/, zone);
  assert.throws(() => zoneOf(7), /use a string/);
  assert.throws(() => zonesIn("zone: [cluster.local, com]"), /s\.yaml:2:7: zone: invalid zone "com"/);
});

test("a zone twice, nested zones, and a zone in the way of another setting are conflicts, with the place", () => {
  for (const [values, what] of [
    [{ zone: ["a.test", "a.test"] }, /s\.yaml: zone: zone "a\.test" is listed twice: remove one of them/],
    [{ zone: ["a.test", "b.a.test"] }, /zones "a\.test" and "b\.a\.test" are nested: remove one of them/],
    [{ zone: ["b.a.test", "a.test"] }, /are nested: remove one of them/],
    [{ zone: ["cluster.local"], strict: true }, /zone: has no effect with strict, because Docker has no such names/],
  ] as const)
    assert.throws(() => settingsOf(values), what);
  assert.deepEqual(settingsOf({ zone: ["xa.test", "a.test"] }).zones, ["xa.test", "a.test"]);
});
