// Proves where pods are told to ask, and what of a namespace is ours for that.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { NodeFact } from "../../../../src/container/kind/node-fact.ts";
import {
  DEDICATED,
  type AdvertisedInput,
  advertisedAddresses,
} from "../../../../src/container/kind/advertised-addresses.ts";
import { KIND_DEFAULTS, type KindPolicy } from "../../../../src/base/model/kind-policy.ts";

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
  hostGateway: "172.17.0.1",
};

function published(
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

for (const [address, told] of [
  ["auto", "172.18.0.1"],
  ["gateway", "172.18.0.1"],
  ["node", "172.18.0.2"],
  ["host", "172.17.0.1"],
  ["169.254.9.9", "169.254.9.9"],
  ["fd00::9", "172.18.0.1"],
] as const) {
  test(`kind.ip ${address} has pods told ${told}`, () => {
    assert.deepEqual(published({ address }).advertised, [told]);
  });
}

for (const [families, told] of [
  ["auto", ["172.18.0.1"]],
  ["ipv4", ["172.18.0.1"]],
  ["ipv6", ["fd00::1"]],
  ["both", ["172.18.0.1", "fd00::1"]],
] as const) {
  test(`with families ${families} resolv.conf names ${told.join(" and ")}, and both are ours`, () => {
    assert.deepEqual(published({ families }).advertised, told);
    assert.deepEqual(published({ families }).captured, ["172.18.0.1", "fd00::1"]);
  });
}

test("a node without IPv4 has its pods told IPv6", () => {
  const fact = { ...FACT, own: { ipv4: undefined, ipv6: "fd00::2" }, gateway: { ipv4: undefined, ipv6: "fd00::1" } };
  assert.deepEqual(published({}, { fact }).advertised, ["fd00::1"]);
});

test("without a gateway pods are told an address that the node itself holds", () => {
  const fact = { ...FACT, gateway: { ipv4: undefined, ipv6: undefined } };
  assert.deepEqual(published({ families: "both" }, { fact }).advertised, [DEDICATED.ipv4, DEDICATED.ipv6]);
});

test("a node without IPv6 has no IPv6 address of ours", () => {
  assert.deepEqual(published({ families: "both" }, { hasIpv6: false }).captured, ["172.18.0.1"]);
});

test("what KIND's entrypoint named is told on and is ours; what a stranger named is neither", () => {
  const entrypoint = { nameservers: ["192.168.65.254"], fromEntrypoint: ["192.168.65.254"] };
  assert.deepEqual(published({}, entrypoint).advertised, ["192.168.65.254"]);
  assert.deepEqual(published({}, entrypoint).captured, ["192.168.65.254", "fd00::1"]);
  const stranger = published({}, { nameservers: ["192.0.2.53"] });
  assert.deepEqual([stranger.advertised, stranger.foreign], [["172.18.0.1"], ["192.0.2.53"]]);
  assert.ok(!stranger.captured.includes("192.0.2.53"));
});

test("what was told once stays, whatever becomes of the networks", () => {
  const fact = { ...FACT, gateway: { ipv4: "172.30.0.1", ipv6: undefined } };
  assert.deepEqual(published({}, { fact, before: ["172.18.0.1"] }).advertised, ["172.18.0.1"]);
});

test("another wish is told, and what was told before goes on being ours", () => {
  const changed = published({ address: "node" }, { before: ["172.18.0.1"], isSettingNew: true });
  assert.deepEqual(changed.advertised, ["172.18.0.2"]);
  assert.ok(changed.captured.includes("172.18.0.1"));
});
