/**
 * What Docker says about a container's links, and the reason where it has none.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import type { NetworkFact } from "../../../../src/container/facts/fact.ts";
import {
  addressesOf,
  endpointOn,
  missingAmong,
  noLinkAtAll,
  linkLocalOf,
} from "../../../../src/container/links/container-links.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../../support/scripted/builders.ts";

const NETWORKS = new Map<string, NetworkFact>(
  [
    aNetworkFact({ id: "a", name: "front", bridge: "br-a" }),
    aNetworkFact({ id: "b", name: "flat", driver: "macvlan" }),
  ].map((fact) => [fact.id, fact]),
);
const networkOf = (id: string): NetworkFact | undefined => NETWORKS.get(id);
const on = (networkId: string, networkName: string): ReturnType<typeof anEndpoint> =>
  anEndpoint({ networkId, networkName });

test("a link-local address is formed from the MAC address as the kernel does", () => {
  assert.equal(linkLocalOf("02:42:ac:12:00:02"), "fe80::42:acff:fe12:2");
  assert.equal(linkLocalOf("ba:d0:00:ff:01:00"), "fe80::b8d0:ff:feff:100");
});

test("containers without a network of their own have a reason", () => {
  const reasonOf = (networkMode: string, endpoints = [on("a", "front")]): string | undefined =>
    noLinkAtAll(aContainer({ networkMode, endpoints }))?.reason;
  assert.equal(reasonOf("host"), "host-network");
  assert.equal(reasonOf("container:0123456789abcdef"), "shared-namespace");
  assert.equal(reasonOf("none", []), "no-network");
  assert.equal(reasonOf("none", [on("n", "none")]), "no-network");
  assert.equal(reasonOf("none"), undefined);
  assert.equal(reasonOf("front"), undefined);
  assert.equal(noLinkAtAll(aContainer({ networkMode: "container:0123456789abcdef" }))?.owner, "0123456789abcdef");
});

test("each network without a link is named, with its driver where that is why", () => {
  const fact = aContainer({ endpoints: [on("a", "front"), on("b", "flat"), on("c", "new")] });
  assert.deepEqual(
    missingAmong([], fact, networkOf).map(({ reason, text }) => [reason, text]),
    [
      ["not-found", "no link on network front (bridge br-a) was found on the host"],
      ["other-driver", "the driver macvlan of network flat makes no link on the host"],
      ["not-found", "no link on network new was found on the host"],
    ],
  );
});

test("a link belongs to the network whose bridge it is a port of, and has the addresses that Docker gave", () => {
  const endpoint = { ...on("a", "front"), ipv4: "172.18.0.2", ipv6: "fd00::2", mac: "02:42:ac:12:00:02" };
  const fact = aContainer({ endpoints: [on("b", "flat"), endpoint] });
  assert.equal(endpointOn(fact, "br-a", networkOf), endpoint);
  assert.equal(endpointOn(fact, "br-b", networkOf), undefined);
  assert.equal(endpointOn(fact, undefined, networkOf), undefined);
  assert.deepEqual(addressesOf(endpoint), ["172.18.0.2", "fd00::2", "fe80::42:acff:fe12:2"]);
});
