// Proves how the settings for etcd are read: what is accepted, and that each mistake says what to use.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readSettings } from "../../../src/config/file/settings-file.ts";
import { readEnvironment } from "../../../src/config/layers.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { type EtcdPolicy, etcdOf } from "../../../src/features/etcd/feature.ts";
import { ETCD_DEFAULTS, PUBLISH_DEFAULTS } from "./defaults.ts";

function read(etcd: object, more: object = {}): EtcdPolicy {
  const text = JSON.stringify({ version: 1, etcd, ...more });
  return etcdOf(mergeSettings([readSettings(Buffer.from(text), "f")]));
}

const ENDPOINT = { endpoints: "http://10.0.0.5:2379" };

test("all keys; one endpoint, zone or quirk needs no list", () => {
  const whole = {
    endpoints: ["https://etcd.test:2379/", "https://[fd00::5]:2379"],
    prefix: "/dns/production/",
    zones: ["Shop.test.", "0.10.in-addr.arpa"],
    ca: "/etc/ca.pem",
    user: "dns11",
    "password-file": "/etc/password",
    "max-stale": "1h",
    quirks: ["subtree"],
  };
  assert.deepEqual(read(whole), {
    endpoints: ["https://etcd.test:2379", "https://[fd00::5]:2379"],
    prefix: "/dns/production",
    zones: ["shop.test", "0.10.in-addr.arpa"],
    ca: "/etc/ca.pem",
    user: "dns11",
    passwordFile: "/etc/password",
    staleSecondsMax: 3600,
    quirks: ["subtree"],
    publish: undefined,
  });
  const short = read({ ...ENDPOINT, zones: "skydns.local" });
  assert.deepEqual(
    [short.endpoints, short.zones, short.prefix],
    [["http://10.0.0.5:2379"], ["skydns.local"], "/skydns"],
  );
  const { values } = readEnvironment({ DNS11_ETCD_ENDPOINTS: "http://10.0.0.5:2379, http://10.0.0.6:2379" });
  assert.deepEqual(values, { "etcd.endpoints": ["http://10.0.0.5:2379", "http://10.0.0.6:2379"] });
  assert.deepEqual(ETCD_DEFAULTS.endpoints, [], "off by default");
});

test("each invalid value, and values that contradict others, say what to use", () => {
  const good = { ...ENDPOINT, zones: ["shop.test"] };
  for (const [etcd, message, more = {}] of [
    [{ ...good, endpoints: "10.0.0.5:2379" }, /use the client URL of a member/],
    [{ ...good, endpoints: "http://10.0.0.5:2379/v3" }, /use the client URL/],
    [{ ...good, endpoints: "ftp://10.0.0.5" }, /use the client URL/],
    [{ ...good, endpoints: "http://u:p@10.0.0.5:2379" }, /etcd\.user and etcd\.password-file/],
    [{ ...good, endpoints: 5 }, /use the client URL/],
    [{ ...good, prefix: "skydns" }, /invalid prefix "skydns": use a slash and a word/],
    [{ ...good, prefix: "/a b" }, /use a slash and a word/],
    [{ ...good, prefix: "/" }, /use a slash and a word/],
    [{ ...good, zones: "com" }, /hide a public domain/],
    [{ ...good, zones: "local" }, /without a meaning of its own/],
    [{ ...good, zones: "arpa" }, /without a meaning of its own/],
    [{ ...good, zones: "not a name" }, /use a domain name/],
    [{ ...good, user: "a b", "password-file": "/p" }, /use the name of a user of etcd/],
    [{ ...good, "password-file": "p" }, /use an absolute path/],
    [{ ...good, quirks: "all" }, /use one of subtree, text-only/],
    [{ ...good, "max-stale": "9d" }, /whole seconds from 0s? to 7d/],
    [{ ...good, prefixes: 1 }, /unknown key; did you mean "prefix"/],
    [ENDPOINT, /etcd\.endpoints: needs etcd\.zones/],
    [{ zones: ["shop.test"] }, /etcd\.zones: has no effect without etcd\.endpoints/],
    [{ "password-file": "/p" }, /etcd\.password-file: has no effect without etcd\.endpoints/],
    [{ ...good, user: "u" }, /needs etcd\.password-file/],
    [{ ...good, "password-file": "/p" }, /needs etcd\.user/],
    [{ ...good, ca: "/ca.pem" }, /no endpoint is https/],
    [{ ...good, endpoints: ["http://a:1", "http://a:1"] }, /lists an endpoint twice/],
    [{ ...good, zones: ["shop.test", "a.shop.test"] }, /are the same or nested/],
    [good, /"shop\.test" and the zone "a\.shop\.test" are the same or nested/, { zone: ["a.shop.test"] }],
    [good, /overlaps host-domain/, { "host-names": "auto", "host-domain": "shop.test" }],
    [good, /has no effect with strict, because Docker has no such names/, { strict: true }],
  ] as const) {
    const found = (error: unknown): boolean => error instanceof BadSettings && message.test(error.lines.join());
    assert.throws(
      () => read(etcd, more),
      (error) => found(error) || assert.fail(`${JSON.stringify(etcd)}: ${String(error)}`),
    );
  }
});

test("publishing: off by default, with the first zone; what it needs and what has no effect is named", () => {
  const publish = { ...ENDPOINT, publish: true };
  const { publish: policy } = read(publish, { zone: ["cluster.test", "other.test"] });
  assert.deepEqual(policy, { ...PUBLISH_DEFAULTS, zone: "cluster.test", machine: undefined });
  const all = {
    ...publish,
    machine: "Node-1",
    address: ["192.0.2.1", "2001:db8::1"],
    "routed-networks": "back",
    lease: "1m",
    "nearest-first": true,
  };
  assert.deepEqual(read(all, { zone: "cluster.test" }).publish, {
    zone: "cluster.test",
    machine: "node-1",
    addresses: ["192.0.2.1", "2001:db8::1"],
    routedNetworks: ["back"],
    leaseSeconds: 60,
    isNearestFirst: true,
  });
  const zone = { zone: "cluster.test" };
  for (const [etcd, message, more = zone] of [
    [publish, /etcd\.publish: needs zone: set the zone that the machines share/, {}],
    [{ ...publish, zones: ["cluster.test"] }, /same or nested/],
    [{ publish: true }, /f:1:\d+: etcd\.publish: has no effect without etcd\.endpoints/],
    [{ ...publish, machine: "a.b" }, /invalid machine "a\.b": use letters, digits/],
    [{ ...publish, machine: "../m2" }, /invalid machine/],
    [{ ...publish, machine: "x".repeat(33) }, /at most 32/],
    [{ ...publish, address: "127.0.0.1" }, /invalid address "127\.0\.0\.1": use an IP address of this machine/],
    [{ ...publish, address: ["192.0.2.1", "192.0.2.2"] }, /two addresses of one family/],
    [{ ...publish, lease: "5s" }, /from 10s to 10m/],
    [{ ...publish, "routed-networks": "a b" }, /use the name of a network/],
    [{ ...ENDPOINT, zones: ["a.test"], machine: "m1" }, /etcd\.machine: has no effect without etcd\.publish/],
    [{ ...ENDPOINT, zones: ["a.test"], "nearest-first": true }, /has no effect without etcd\.publish/],
  ] as const)
    assert.throws(
      () => read(etcd, more),
      (error: Error) =>
        message.test(`${error.message} ${JSON.stringify(error)}`) ||
        assert.fail(`${JSON.stringify(etcd)}: ${String(error)}`),
    );
});
