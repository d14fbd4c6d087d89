// Proves the order in which a container's networks are searched.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import type { EndpointFact, NetworkFact } from "../../../../../src/container/facts/fact.ts";
import { type JoinedNetwork, inSearchOrder } from "../../../../../src/container/names/docker/networks.ts";
import { aNetworkFact, anEndpoint } from "../../../../support/scripted/builders.ts";

const V4 = "192.0.2.1";
const V6 = "2001:db8::1";

test("networks are ordered by the bytes of their names, capitals first", () => {
  assert.deepEqual(ordered(["b", "a", "B", "10", "9", "a-b", "a.b", "ab"].map((name) => joined(name))), [
    "10",
    "9",
    "B",
    "a",
    "a-b",
    "a.b",
    "ab",
    "b",
  ]);
});

test("more gateways take precedence over the name: both families, then one, then none", () => {
  const both = joined("d", { ipv4Gateway: V4, ipv6Gateway: V6 });
  const v6 = joined("c", { ipv4Gateway: undefined, ipv6Gateway: V6 });
  const v4 = joined("b", { ipv4Gateway: V4 });
  const none = joined("a", { ipv4Gateway: undefined });
  assert.deepEqual(ordered([none, v4, v6, both]), ["d", "b", "c", "a"]);
});

test("internal networks come last, whatever their gateways", () => {
  const internal = joined("a", { ipv6Gateway: V6 }, { isInternal: true });
  const other = joined("b", { ipv4Gateway: undefined });
  assert.deepEqual(ordered([internal, other]), ["b", "a"]);
});

test("the gateway priority takes precedence over everything else, negative ones last", () => {
  const high = joined("z", { gatewayPriority: 1, ipv4Gateway: undefined }, { isInternal: true });
  const low = joined("a", { gatewayPriority: -1, ipv6Gateway: V6 });
  assert.deepEqual(ordered([low, joined("m"), high]), ["z", "m", "a"]);
});

test("the order does not depend on the order of the input", () => {
  const network = fc.record({
    name: fc.string({ maxLength: 3 }),
    gatewayPriority: fc.integer({ min: -1, max: 1 }),
    isInternal: fc.boolean(),
    ipv4Gateway: fc.constantFrom(V4, undefined),
    ipv6Gateway: fc.constantFrom(V6, undefined),
  });
  const networks = fc.uniqueArray(network, { selector: ({ name }) => name, maxLength: 6 });
  fc.assert(
    fc.property(
      networks.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
      ([one, other]) => {
        const names = [one, other].map((all) =>
          ordered(all.map(({ name, isInternal, ...rest }) => joined(name, rest, { isInternal }))),
        );
        assert.deepEqual(names[0], names[1]);
      },
    ),
  );
});

function joined(name: string, endpoint: Partial<EndpointFact> = {}, network: Partial<NetworkFact> = {}): JoinedNetwork {
  return { endpoint: anEndpoint({ networkName: name, ...endpoint }), network: aNetworkFact({ name, ...network }) };
}

function ordered(all: readonly JoinedNetwork[]): string[] {
  return inSearchOrder(all).map(({ network }) => network.name);
}
