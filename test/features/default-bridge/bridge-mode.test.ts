// Proves what is captured in a container on the default bridge: a pair of sockets for each server of its file.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BridgeMode } from "../../../src/features/default-bridge/default-bridge.ts";
import { servingPlan } from "../../../src/container/rules/plan.ts";

test("each server has sockets of its own, from which replies have its address", () => {
  const { redirects } = new BridgeMode(["10.0.0.1", "10.0.0.2"]).capture();
  assert.deepEqual(
    redirects.map(({ bind, fromInside, fromPods, replySource }) => [bind, fromInside, fromPods, replySource]),
    [
      ["127.0.0.11", ["10.0.0.1"], [], "10.0.0.1"],
      ["127.0.0.11", ["10.0.0.2"], [], "10.0.0.2"],
    ],
  );
});

test("the rules redirect queries to these servers alone, and ours pass by", () => {
  const capture = new BridgeMode(["10.0.0.1"]).capture();
  const plans = servingPlan({
    capture,
    listening: [{ address: "127.0.0.11", udpPort: 4001, tcpPort: 4002 }],
    zone: 7,
    sparedPorts: [],
    passthroughMark: 1,
    trialMark: 2,
  });
  assert.deepEqual(
    plans.map(({ family }) => family),
    ["ip"],
  );
  const query = plans[0]?.chains.find(({ name }) => name === "query")?.rules ?? [];
  assert.deepEqual(query[0], { match: { mark: 1 }, action: { kind: "accept" } });
  assert.deepEqual(
    query.slice(1).map(({ match }) => [match.protocol, match.destination, match.destinationPort]),
    [
      ["udp", "10.0.0.1", 53],
      ["tcp", "10.0.0.1", 53],
    ],
  );
});

test("other servers, or another order, are another capture", () => {
  const mode = new BridgeMode(["10.0.0.1"]);
  assert.deepEqual(
    [["10.0.0.1"], ["10.0.0.1", "10.0.0.2"], ["10.0.0.2", "10.0.0.1"], ["10.0.0.2", "10.0.0.1"]].map((servers) =>
      mode.update(servers),
    ),
    [false, true, true, false],
  );
});

test("without a server nothing can be captured, and that is said", () => {
  assert.throws(() => new BridgeMode([]).capture(), /IPv6 is off/);
});
