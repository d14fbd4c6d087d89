// Proves the reverse zones of subnets: exact where they end with an octet, split where they do not, and never many.

import assert from "node:assert/strict";
import { test } from "node:test";

import { presentation } from "../../../../src/base/dns/name.ts";
import { reverseZones } from "../../../../src/container/host/reverse-zones.ts";

function zonesOf(...subnets: readonly string[]): string[] {
  const parsed = subnets.map((text) => {
    const [address = "", length] = text.split("/");
    return { address, prefixLength: Number(length) };
  });
  return reverseZones(parsed).map((bytes) => {
    assert.equal(bytes.at(-1), 0);
    return presentation(Buffer.from(bytes), 0, bytes.length - 1);
  });
}

test("a subnet that ends with an octet is one zone", () => {
  assert.deepEqual(zonesOf("172.18.0.1/16"), ["18.172.in-addr.arpa"]);
  assert.deepEqual(zonesOf("192.168.7.1/24"), ["7.168.192.in-addr.arpa"]);
  assert.deepEqual(zonesOf("10.0.0.1/8"), ["10.in-addr.arpa"]);
});

test("one that ends within an octet is several, from its first on", () => {
  const zones = zonesOf("192.168.37.1/20");
  assert.equal(zones.length, 16);
  assert.deepEqual([zones[0], zones[15]], ["32.168.192.in-addr.arpa", "47.168.192.in-addr.arpa"]);
  assert.deepEqual(
    zonesOf("10.99.6.7/22"),
    [4, 5, 6, 7].map((octet) => `${octet}.99.10.in-addr.arpa`),
  );
});

test("one that would be very many, or a part of a zone, is the zone around it", () => {
  assert.deepEqual(zonesOf("10.64.0.1/10"), ["10.in-addr.arpa"]);
  assert.deepEqual(zonesOf("172.20.128.1/17"), ["20.172.in-addr.arpa"]);
  assert.deepEqual(zonesOf("192.168.7.129/28"), ["7.168.192.in-addr.arpa"]);
  assert.deepEqual(zonesOf("128.0.0.1/2"), []);
});

test("IPv6 zones end with a digit", () => {
  assert.deepEqual(zonesOf("fd11::1/64"), ["0.0.0.0.0.0.0.0.0.0.0.0.1.1.d.f.ip6.arpa"]);
  assert.deepEqual(zonesOf("fd11:2345::1/30"), ["4.3.2.1.1.d.f.ip6.arpa"]);
});

test("the same zone is listed once, and there is a limit", () => {
  assert.equal(zonesOf("172.18.0.1/16", "172.18.4.1/24", "172.18.0.1/16").length, 2);
  assert.equal(zonesOf(...Array.from({ length: 200 }, (_, i) => `10.1.${i}.1/24`)).length, 64);
});
