// Proves which containers the host can reach: on a bridge of this engine, with an interface of the host on its subnet.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HostMembers } from "../../../../src/container/host/host-names.ts";
import { HostSubnets } from "../../../../src/container/host/host-subnets.ts";
import type { NetworkFact } from "../../../../src/container/facts/fact.ts";
import type { InterfaceAddress } from "../../../../src/kernel/rtnetlink.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../../support/scripted/builders.ts";

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
