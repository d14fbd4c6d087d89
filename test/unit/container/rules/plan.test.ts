// Proves the rules that should stand in a namespace: which packets they touch, and in which order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { USER_DEFINED_NETWORK } from "../../../../src/container/capture/capture.ts";
import {
  type PlanInput,
  TABLE_NAME,
  drainingPlan,
  servingPlan,
  trialPlan,
} from "../../../../src/container/rules/plan.ts";

const OURS = "127.0.0.11";
const INPUT: PlanInput = {
  capture: USER_DEFINED_NETWORK,
  listening: { address: OURS, udpPort: 40_001, tcpPort: 40_002 },
  zone: 77,
  spared: [],
  doorMark: 0x11,
  trialMark: 0x22,
};

const DOOR = { match: { mark: 0x11 }, action: { kind: "accept" } };
const ZONE = { kind: "zone", zone: 77 };
const ZONE_OF_REPLIES = [
  { match: { protocol: "udp", source: OURS, sourcePort: 40_001 }, action: ZONE },
  { match: { protocol: "udp", destination: OURS, destinationPort: 40_001 }, action: ZONE },
  { match: { protocol: "tcp", source: OURS, sourcePort: 40_002 }, action: ZONE },
  { match: { protocol: "tcp", destination: OURS, destinationPort: 40_002 }, action: ZONE },
];
const REPLIES = [
  { match: { protocol: "udp", source: OURS, sourcePort: 40_001 }, action: { kind: "snat-port", port: 53 } },
  { match: { protocol: "tcp", source: OURS, sourcePort: 40_002 }, action: { kind: "snat-port", port: 53 } },
];

test("serving, queries go to our ports and replies leave from port 53, both in our zone", () => {
  assert.deepEqual(servingPlan(INPUT), {
    name: TABLE_NAME,
    chains: [
      {
        name: "zone",
        type: "filter",
        hook: "output",
        priority: -300,
        rules: [
          DOOR,
          { match: { protocol: "udp", destination: OURS, destinationPort: 53 }, action: ZONE },
          { match: { protocol: "tcp", destination: OURS, destinationPort: 53 }, action: ZONE },
          ...ZONE_OF_REPLIES,
        ],
      },
      {
        name: "query",
        type: "nat",
        hook: "output",
        priority: -101,
        rules: [
          DOOR,
          {
            match: { protocol: "udp", destination: OURS, destinationPort: 53 },
            action: { kind: "dnat", address: OURS, port: 40_001 },
          },
          {
            match: { protocol: "tcp", destination: OURS, destinationPort: 53 },
            action: { kind: "dnat", address: OURS, port: 40_002 },
          },
        ],
      },
      { name: "reply", type: "nat", hook: "postrouting", priority: -101, rules: REPLIES },
    ],
  });
});

test("draining, no query is touched, and replies to those that are here still are", () => {
  const serving = servingPlan(INPUT);
  const draining = drainingPlan(INPUT, []);
  assert.deepEqual(
    draining.chains.map(({ name, rules }) => [name, rules]),
    [
      ["zone", [DOOR, ...ZONE_OF_REPLIES]],
      ["query", [DOOR]],
      ["reply", REPLIES],
    ],
  );
  const withoutRules = (plan: typeof serving): object => plan.chains.map((chain) => ({ ...chain, rules: [] }));
  assert.deepEqual(withoutRules(draining), withoutRules(serving));
});

test("on trial, the same is done to a probe's queries alone, and replies find their way", () => {
  const [serving, trial] = [servingPlan(INPUT), trialPlan(INPUT)];
  for (const [index, { rules, ...chain }] of trial.chains.entries()) {
    const { rules: whole, ...same } = serving.chains[index] ?? assert.fail();
    assert.deepEqual(chain, same);
    const expected = whole.map((rule) =>
      rule.match.destinationPort !== 53 ? rule : { ...rule, match: { mark: 0x22, ...rule.match } },
    );
    assert.deepEqual(rules, expected);
  }
});

test("every captured address has its rules, both protocols each", () => {
  const { chains } = servingPlan({ ...INPUT, capture: { fromInside: ["192.0.2.1", "192.0.2.2"] } });
  const destinations = chains.map(({ rules }) =>
    rules.flatMap(({ match }) => (match.destinationPort === 53 ? [match.destination] : [])),
  );
  const both = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"];
  assert.deepEqual(destinations, [both, both, []]);
});

test("our own packets pass by before any rule that chooses a zone or another destination", () => {
  for (const plan of [trialPlan(INPUT), servingPlan(INPUT), drainingPlan(INPUT, [])]) {
    for (const { rules } of plan.chains) {
      const first = rules.findIndex(({ action }) => action.kind === "zone" || action.kind === "dnat");
      if (first !== -1) assert.deepEqual(rules[0], DOOR);
    }
  }
});

test("draining, TCP conversations that go on are still led to us, by their clients' ports; what is spared never is", () => {
  const rules = drainingPlan(INPUT, [5000, 5001]).chains.flatMap((chain) => chain.rules);
  const kept = rules.filter(({ match }) => match.destinationPort === 53);
  assert.deepEqual(
    kept.map(({ match, action }) => [match.protocol, match.sourcePort, action.kind]),
    [
      ["tcp", 5000, "zone"],
      ["tcp", 5001, "zone"],
      ["tcp", 5000, "dnat"],
      ["tcp", 5001, "dnat"],
    ],
  );
  for (const chain of servingPlan({ ...INPUT, spared: [6000] }).chains.slice(0, 2)) {
    assert.deepEqual(chain.rules[1], {
      match: { protocol: "tcp", sourcePort: 6000, destinationPort: 53 },
      action: { kind: "accept" },
    });
  }
});
