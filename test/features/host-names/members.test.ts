// Proves which containers the host can reach: on a bridge of this engine, with an interface of the host on its subnet. And the reverse
// zones of these subnets: exact where they end with an octet, split where they do not, and never many.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HostMembers, HostSubnets, reverseZones } from "../../../src/features/host-names/members.ts";
import { presentation } from "../../../src/base/dns/name.ts";
import type { NetworkFact } from "../../../src/container/facts/fact.ts";
import type { InterfaceAddress } from "../../../src/kernel/rtnetlink.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../support/scripted/builders.ts";

function interfaces(...texts: readonly string[]): InterfaceAddress[] {
  return texts.map((text, index) => {
    const [address = "", length] = text.split("/");
    return { index, address, prefixLength: Number(length), label: undefined };
  });
}

function isReachable(address: string, network: NetworkFact | undefined, ...host: readonly string[]): boolean {
  const subnets = new HostSubnets(() => interfaces(...host));
  return subnets.reachable(anEndpoint({ ipv4: address }), network).endpoint !== undefined;
}

test("a bridge network with an interface of the host is reachable, also an internal one", () => {
  assert.equal(isReachable("172.20.0.2", aNetworkFact(), "172.20.0.1/16"), true);
  assert.equal(isReachable("172.20.0.2", aNetworkFact({ isInternal: true }), "172.20.0.1/16"), true);
});

test("no interface on the subnet, another driver, a swarm scope or an unknown network: not reachable", () => {
  for (const own of ["172.21.0.1/16", "172.20.0.2/32", "127.0.0.1/8", "fd11::1/64"])
    assert.equal(isReachable("172.20.0.2", aNetworkFact(), own), false, own);
  for (const driver of ["overlay", "macvlan", "ipvlan"])
    assert.equal(isReachable("172.20.0.2", aNetworkFact({ driver }), "172.20.0.1/16"), false, driver);
  assert.equal(isReachable("172.20.0.2", aNetworkFact({ scope: "swarm" }), "172.20.0.1/16"), false);
  assert.equal(isReachable("172.20.0.2", undefined, "172.20.0.1/16"), false);
});

test("of two addresses only the reachable one is left", () => {
  const subnets = new HostSubnets(() => interfaces("172.20.0.1/16"));
  const { endpoint, isSeen } = subnets.reachable(anEndpoint({ ipv6: "fd11::2" }), aNetworkFact());
  assert.deepEqual([endpoint?.ipv4, endpoint?.ipv6, isSeen], ["172.20.0.2", undefined, false]);
});

test("subnets are in use as long as a container is on them, and each change is reported once", () => {
  let changes = 0;
  const members = new HostMembers("docker", {
    networkOf: () => aNetworkFact(),
    readAddresses: () => interfaces("172.20.0.1/16", "172.21.0.1/16"),
    onSubnets: () => changes++,
  });
  members.put(aContainer());
  members.put(aContainer({ id: "b", endpoints: [anEndpoint({ ipv4: "172.20.0.3" })] }));
  members.put(aContainer());
  assert.deepEqual([members.subnets.map(({ address }) => address), changes], [["172.20.0.1"], 1]);
  members.remove("b");
  members.put(aContainer({ endpoints: [anEndpoint({ ipv4: "172.21.0.2" })] }));
  assert.deepEqual([members.subnets.map(({ address }) => address), changes], [["172.21.0.1"], 2]);
  members.remove("c0ffee");
  assert.deepEqual([members.subnets, changes], [[], 3]);
  members.close();
});

test("a subnet whose interface goes before its last container is in use no longer than that", async () => {
  let own = interfaces("172.20.0.1/16");
  const members = new HostMembers("docker", {
    networkOf: () => aNetworkFact(),
    readAddresses: () => own,
    onSubnets: () => undefined,
  });
  members.put(aContainer());
  // The addresses are read again for a container on another network.
  own = interfaces("172.21.0.1/16");
  const other = aContainer({ id: "b", endpoints: [anEndpoint({ ipv4: "172.21.0.2" })] });
  await waitFor("the other subnet", () => {
    members.put(other);
    return members.reachable("b").length > 0 || undefined;
  });
  assert.deepEqual(
    members.subnets.map(({ address }) => address),
    ["172.20.0.1", "172.21.0.1"],
  );
  members.remove("c0ffee");
  assert.deepEqual(
    members.subnets.map(({ address }) => address),
    ["172.21.0.1"],
  );
  members.close();
});

/** The reverse zones of subnets. */
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
