// What a KIND node is warned of: not served, a nameserver that is dns11 itself, and names of a swarm that its pods lack.

import assert from "node:assert/strict";
import { test } from "node:test";

import { nodeWarnings } from "../../../src/features/kind/node-fact.ts";
import { aContainer } from "../../support/scripted/builders.ts";

const OWN = { ownAddresses: ["172.20.0.2"], swarmNetworks: [], reason: undefined, isNested: false };

test("a node that is served as it is set up gets no warning", () => {
  assert.deepEqual(nodeWarnings(aContainer(), OWN), []);
});

test("a node on a swarm network, with the network's name; not if it is not served at all", () => {
  const [warning = "", ...others] = nodeWarnings(aContainer(), { ...OWN, swarmNetworks: ["mesh"] });
  assert.match(warning, /do not resolve services .* swarm network "mesh": connect the node/);
  assert.deepEqual(others, []);
  const skipped = nodeWarnings(aContainer(), { ...OWN, swarmNetworks: ["mesh"], reason: "it is paused" });
  assert.deepEqual(skipped, ["the pods of this KIND node are not served: it is paused"]);
});

test("a nameserver at which its pods reach dns11", () => {
  const servers = [
    { from: "container", address: "172.20.0.2" },
    { from: "host", address: "172.20.0.2" },
  ] as const;
  const nameservers = { kind: "listed", servers, isNdotsSet: false, isOwn: true } as const;
  assert.deepEqual(nodeWarnings(aContainer({ nameservers }), OWN), [
    "its nameserver 172.20.0.2 is not used: its pods reach dns11 at that address",
  ]);
});
