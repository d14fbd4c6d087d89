// Proves which addresses of containers are remembered, for how long, and how many.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { FormerAddresses } from "../../../../src/container/registry/former-addresses.ts";
import { aContainer, anEndpoint } from "../../../support/scripted/builders.ts";

let nowMs = 0;
const one = anEndpoint({ networkId: "one", networkName: "one", ipv4: "172.20.0.2", ipv6: "fd00::2" });
const before = aContainer({ name: "db", endpoints: [one] });

function addresses(former: FormerAddresses): string[] {
  return former.list().map(({ container, networkName, address }) => `${container} ${networkName} ${address}`);
}

test("addresses that a container has left, of both families", () => {
  const former = new FormerAddresses(() => nowMs);
  former.note(before, aContainer({ name: "db", endpoints: [{ ...one, ipv4: "172.20.0.3" }] }));
  assert.deepEqual(addresses(former), ["db one 172.20.0.2"]);
  former.note(before);
  assert.deepEqual(addresses(former), ["db one 172.20.0.2", "db one 172.20.0.2", "db one fd00::2"]);
});

test("an address that stays is not one, nor is one of a network without names", () => {
  const former = new FormerAddresses(() => nowMs);
  former.note(before, before);
  former.note(aContainer({ endpoints: [{ ...one, networkName: "bridge" }] }));
  assert.deepEqual(addresses(former), []);
});

test("they are forgotten after a while, and the oldest when there are too many", () => {
  const former = new FormerAddresses(() => nowMs);
  for (let index = 0; index < LIMITS.formerAddresses; index++) former.note(before);
  assert.equal(former.list().length, LIMITS.formerAddresses);
  nowMs += LIMITS.formerAddressMs + 1;
  assert.deepEqual(addresses(former), []);
});
