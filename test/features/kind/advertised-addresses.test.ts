// Tests which addresses are advertised to pods, and which are captured for that.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { NodeFact } from "../../../src/features/kind/node-fact.ts";
import {
  DEDICATED,
  type AdvertisedInput,
  advertisedAddresses,
} from "../../../src/features/kind/advertised-addresses.ts";
import { KIND_DEFAULTS, type KindPolicy } from "../../../src/features/kind/feature.ts";

const FACT: NodeFact = {
  containerId: "0",
  name: "node",
  startedAt: "",
  sandboxKey: "",
  pid: 1,
  resolvConfPath: undefined,
  search: undefined,
  gateway: { ipv4: "172.18.0.1", ipv6: "fd00::1" },
  own: { ipv4: "172.18.0.2", ipv6: "fd00::2" },
  addresses: ["172.18.0.2", "fd00::2"],
  joins: ["endpoint-1"],
  hostGateway: "172.17.0.1",
};

function advertise(
  policy: Partial<KindPolicy> = {},
  input: Partial<Omit<AdvertisedInput, "policy">> = {},
): ReturnType<typeof advertisedAddresses> {
  return advertisedAddresses({
    policy: { ...KIND_DEFAULTS, ...policy },
    fact: FACT,
    hasIpv6: true,
    nameservers: [],
    before: [],
    fromEntrypoint: [],
    isSettingNew: false,
    ...input,
  });
}

for (const [address, expected] of [
  ["auto", "172.18.0.1"],
  ["gateway", "172.18.0.1"],
  ["node", "172.18.0.2"],
  ["host", "172.17.0.1"],
  ["169.254.9.9", "169.254.9.9"],
  ["fd00::9", "172.18.0.1"],
] as const) {
  test(`kind.ip ${address} advertises ${expected}`, () => {
    assert.deepEqual(advertise({ address }).advertised, [expected]);
  });
}

for (const [families, expected] of [
  ["auto", ["172.18.0.1"]],
  ["ipv4", ["172.18.0.1"]],
  ["ipv6", ["fd00::1"]],
  ["both", ["172.18.0.1", "fd00::1"]],
] as const) {
  test(`with families ${families} resolv.conf names ${expected.join(" and ")}, and both are captured`, () => {
    assert.deepEqual(advertise({ families }).advertised, expected);
    assert.deepEqual(advertise({ families }).captured, ["172.18.0.1", "fd00::1"]);
  });
}

test("a node without IPv4 advertises its IPv6 address", () => {
  const fact = { ...FACT, own: { ipv4: undefined, ipv6: "fd00::2" }, gateway: { ipv4: undefined, ipv6: "fd00::1" } };
  assert.deepEqual(advertise({}, { fact }).advertised, ["fd00::1"]);
});

test("without a gateway the dedicated addresses on the node are advertised", () => {
  const fact = { ...FACT, gateway: { ipv4: undefined, ipv6: undefined } };
  assert.deepEqual(advertise({ families: "both" }, { fact }).advertised, [DEDICATED.ipv4, DEDICATED.ipv6]);
});

test("on a node without IPv6 no IPv6 address is captured", () => {
  assert.deepEqual(advertise({ families: "both" }, { hasIpv6: false }).captured, ["172.18.0.1"]);
});

test("an address that KIND's entrypoint wrote stays advertised and is captured; another program's is neither", () => {
  const entrypoint = { nameservers: ["192.168.65.254"], fromEntrypoint: ["192.168.65.254"] };
  assert.deepEqual(advertise({}, entrypoint).advertised, ["192.168.65.254"]);
  assert.deepEqual(advertise({}, entrypoint).captured, ["192.168.65.254", "fd00::1"]);
  const stranger = advertise({}, { nameservers: ["192.0.2.53"] });
  assert.deepEqual([stranger.advertised, stranger.foreign], [["172.18.0.1"], ["192.0.2.53"]]);
  assert.ok(!stranger.captured.includes("192.0.2.53"));
});

test("an advertised address stays when networks change", () => {
  const fact = { ...FACT, gateway: { ipv4: "172.30.0.1", ipv6: undefined } };
  assert.deepEqual(advertise({}, { fact, before: ["172.18.0.1"] }).advertised, ["172.18.0.1"]);
});

test("a changed setting is advertised, and the earlier address stays captured", () => {
  const changed = advertise({ address: "node" }, { before: ["172.18.0.1"], isSettingNew: true });
  assert.deepEqual(changed.advertised, ["172.18.0.2"]);
  assert.ok(changed.captured.includes("172.18.0.1"));
});
