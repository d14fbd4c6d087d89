// Proves how the settings for etcd are read: what is accepted, and that each mistake says what to use.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readSettings } from "../../../src/config/file/settings-file.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import type { EtcdPolicy } from "../../../src/base/model/etcd-policy.ts";

function read(etcd: object, more: object = {}): EtcdPolicy {
  const text = JSON.stringify({ version: 1, etcd, ...more });
  return mergeSettings([readSettings(Buffer.from(text), "f")]).etcd;
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
  });
  const short = read({ ...ENDPOINT, zones: "skydns.local" });
  assert.deepEqual(
    [short.endpoints, short.zones, short.prefix],
    [["http://10.0.0.5:2379"], ["skydns.local"], "/skydns"],
  );
  assert.deepEqual(mergeSettings([]).etcd.endpoints, [], "off by default");
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
    [{ zones: ["shop.test"] }, /has no effect without etcd\.endpoints/],
    [{ ...good, user: "u" }, /needs etcd\.password-file/],
    [{ ...good, "password-file": "/p" }, /needs etcd\.user/],
    [{ ...good, ca: "/ca.pem" }, /no endpoint is https/],
    [{ ...good, endpoints: ["http://a:1", "http://a:1"] }, /lists an endpoint twice/],
    [{ ...good, zones: ["shop.test", "a.shop.test"] }, /are the same or nested/],
    [good, /"shop\.test" and the zone "a\.shop\.test" are the same or nested/, { zone: ["a.shop.test"] }],
    [good, /overlaps host-domain/, { "host-names": "auto", "host-domain": "shop.test" }],
    [good, /has no effect without the switch local-nodata, which strict turns off/, { strict: true }],
  ] as const) {
    const found = (error: unknown): boolean => error instanceof BadSettings && message.test(error.lines.join());
    assert.throws(
      () => read(etcd, more),
      (error) => found(error) || assert.fail(`${JSON.stringify(etcd)}: ${String(error)}`),
    );
  }
});
