// Proves the rules of a namespace: which packets they match, and in which order.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { CONTAINER_CAPTURE } from "../../../../src/container/capture/capture.ts";
import {
  type Match,
  type PlanInput,
  TABLE_NAME,
  type TablePlan,
  drainingPlan,
  servingPlan,
  trialPlan,
} from "../../../../src/container/rules/plan.ts";

const OURS = "127.0.0.11";
const INPUT: PlanInput = {
  capture: CONTAINER_CAPTURE,
  listening: [{ address: OURS, udpPort: 40_001, tcpPort: 40_002 }],
  zone: 77,
  sparedPorts: [],
  passthroughMark: 0x11,
  trialMark: 0x22,
};

const PASSTHROUGH = { match: { mark: 0x11 }, action: { kind: "accept" } };
const ZONE = { kind: "zone", zone: 77 };
const ZONE_OF_REPLIES = [
  { match: { protocol: "udp", source: OURS, sourcePort: 40_001 }, action: ZONE },
  { match: { protocol: "udp", destination: OURS, destinationPort: 40_001 }, action: ZONE },
  { match: { protocol: "tcp", source: OURS, sourcePort: 40_002 }, action: ZONE },
  { match: { protocol: "tcp", destination: OURS, destinationPort: 40_002 }, action: ZONE },
];
const REPLIES = [
  { match: { protocol: "udp", source: OURS, sourcePort: 40_001 }, action: { kind: "snat", port: 53 } },
  { match: { protocol: "tcp", source: OURS, sourcePort: 40_002 }, action: { kind: "snat", port: 53 } },
];

function one(plans: readonly TablePlan[]): TablePlan {
  assert.equal(plans.length, 1);
  return plans[0] ?? assert.fail();
}

test("serving: queries go to our ports and replies leave from port 53, both in our zone", () => {
  assert.deepEqual(one(servingPlan(INPUT)), {
    family: "ip",
    name: TABLE_NAME,
    chains: [
      {
        name: "zone",
        type: "filter",
        hook: "output",
        priority: -300,
        rules: [
          PASSTHROUGH,
          ...ZONE_OF_REPLIES,
          { match: { protocol: "udp", destination: OURS, destinationPort: 53 }, action: ZONE },
          { match: { protocol: "tcp", destination: OURS, destinationPort: 53 }, action: ZONE },
        ],
      },
      {
        name: "query",
        type: "nat",
        hook: "output",
        priority: -101,
        rules: [
          PASSTHROUGH,
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

test("a program at lo on trial: only probes go past connection tracking; then all queries and replies by UDP do", () => {
  const zoneRules = (plans: readonly TablePlan[]): readonly unknown[] => one(plans).chains[0]?.rules ?? [];
  const query = { protocol: "udp", destination: OURS, destinationPort: 53 };
  const probe = { mark: 0x22, ...query };
  const onTrial = { ...INPUT, untracked: "probes" } as const;
  assert.deepEqual(
    zoneRules(servingPlan(onTrial)),
    zoneRules(servingPlan(INPUT)).toSpliced(
      1 + ZONE_OF_REPLIES.length,
      0,
      { match: probe, action: { kind: "notrack" } },
      { match: probe, action: { kind: "accept" } },
    ),
  );
  const all = zoneRules(servingPlan({ ...INPUT, untracked: "all" }));
  assert.ok(all.some((rule) => isDeepStrictEqual(rule, { match: query, action: { kind: "notrack" } })));
  assert.equal(JSON.stringify(all).match(/notrack/g)?.length, 3, "a query, a reply, and a query to our port");
  // Whether the namespace is ours at all is tried without the program.
  assert.deepEqual(trialPlan({ ...INPUT, untracked: "all" }), trialPlan(INPUT));
});

test("draining: queries are not redirected, and replies to earlier ones are still translated", () => {
  const serving = one(servingPlan(INPUT));
  const draining = one(drainingPlan(INPUT, []));
  assert.deepEqual(
    draining.chains.map(({ name, rules }) => [name, rules]),
    [
      ["zone", [PASSTHROUGH, ...ZONE_OF_REPLIES]],
      ["query", [PASSTHROUGH]],
      ["reply", REPLIES],
    ],
  );
  const withoutRules = (plan: typeof serving): object => plan.chains.map((chain) => ({ ...chain, rules: [] }));
  assert.deepEqual(withoutRules(draining), withoutRules(serving));
});

test("on trial: only a probe's queries are redirected, and replies are translated", () => {
  const [serving, trial] = [one(servingPlan(INPUT)), one(trialPlan(INPUT))];
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
  const redirect = { bind: OURS, fromInside: ["192.0.2.1", "192.0.2.2"], fromPods: [] };
  const { chains } = one(servingPlan({ ...INPUT, capture: { ...CONTAINER_CAPTURE, redirects: [redirect] } }));
  const destinations = chains.map(({ rules }) =>
    rules.flatMap(({ match }) => (match.destinationPort === 53 ? [match.destination] : [])),
  );
  const both = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"];
  assert.deepEqual(destinations, [both, both, []]);
});

test("our own packets are accepted before any rule that sets a zone or another destination", () => {
  for (const plan of [trialPlan(INPUT), servingPlan(INPUT), drainingPlan(INPUT, [])].map(one)) {
    for (const { rules } of plan.chains) {
      const first = rules.findIndex(({ action }) => action.kind === "zone" || action.kind === "dnat");
      if (first !== -1) assert.deepEqual(rules[0], PASSTHROUGH);
    }
  }
});

test("draining: open TCP connections are still redirected, by their client ports; spared ones never are", () => {
  const rules = one(drainingPlan(INPUT, [5000, 5001])).chains.flatMap((chain) => chain.rules);
  const matching = rules.filter(({ match }) => match.destinationPort === 53);
  assert.deepEqual(
    matching.map(({ match, action }) => [match.protocol, match.sourcePort, action.kind]),
    [
      ["tcp", 5000, "zone"],
      ["tcp", 5001, "zone"],
      ["tcp", 5000, "dnat"],
      ["tcp", 5001, "dnat"],
    ],
  );
  for (const chain of one(servingPlan({ ...INPUT, sparedPorts: [6000] })).chains.slice(0, 2)) {
    assert.deepEqual(chain.rules[1], {
      match: { protocol: "tcp", sourcePort: 6000, destinationPort: 53 },
      action: { kind: "accept" },
    });
  }
});

const GATEWAY = "172.18.0.1";
const DEDICATED = "169.254.53.53";
test("where Docker's resolver is closed, its ports accept only what was redirected there, and ours everything", () => {
  const guards = (input: PlanInput): unknown =>
    one(servingPlan(input)).chains.find(({ name }) => name === "guard")?.rules;
  assert.equal(guards(INPUT), undefined);
  const accept = { kind: "accept" };
  assert.deepEqual(guards({ ...INPUT, closesResolver: true }), [
    { match: { isFromOutside: true }, action: accept },
    { match: { protocol: "udp", destination: OURS, destinationPort: 40_001 }, action: accept },
    { match: { protocol: "tcp", destination: OURS, destinationPort: 40_002 }, action: accept },
    { match: { isDnat: true }, action: accept },
    { match: { protocol: "udp", destination: OURS }, action: { kind: "drop" } },
    { match: { protocol: "tcp", destination: OURS }, action: { kind: "drop" } },
  ]);
});

test("where Docker's resolver is closed, a mark leads to it only from one control group, and to other servers by itself", () => {
  const passes = (input: PlanInput): Match[] => {
    const chains = one(servingPlan(input)).chains.filter(({ hook }) => hook === "output");
    const [zone = [], query = []] = chains.map(({ rules }) =>
      rules.filter(({ action }) => action.kind === "accept").map(({ match }) => match),
    );
    assert.deepEqual(zone, query);
    return zone;
  };
  const closed = { ...INPUT, closesResolver: true };
  const passthroughGroup = { id: 42n, level: 2 };
  assert.deepEqual(passes(INPUT), [{ mark: 0x11 }]);
  assert.deepEqual(passes({ ...INPUT, passthroughGroup }), [{ mark: 0x11 }]);
  assert.deepEqual(passes(closed), []);
  assert.deepEqual(passes({ ...closed, passthroughGroup }), [{ mark: 0x11, controlGroup: passthroughGroup }]);
  const redirects = [
    { bind: OURS, fromInside: [OURS, "192.0.2.53"], fromPods: [] },
    { bind: OURS, fromInside: ["192.0.2.53"], fromPods: [] },
  ];
  const beside = {
    ...closed,
    capture: { ...CONTAINER_CAPTURE, redirects },
    listening: [...INPUT.listening, ...INPUT.listening],
  };
  assert.deepEqual(passes(beside), [{ mark: 0x11, destination: "192.0.2.53" }]);
});

const NODE: PlanInput = {
  ...INPUT,
  capture: {
    redirects: [
      { bind: OURS, fromInside: [OURS], fromPods: [] },
      { bind: DEDICATED, fromInside: [GATEWAY], fromPods: [GATEWAY], replySource: GATEWAY },
      { bind: "fd64::53", fromInside: ["fd00::1"], fromPods: ["fd00::1"] },
    ],
    bypassInterfaces: [7],
    guardsLoopback: false,
  },
  listening: [
    { address: OURS, udpPort: 1, tcpPort: 2 },
    { address: DEDICATED, udpPort: 3, tcpPort: 4 },
    { address: "fd64::53", udpPort: 5, tcpPort: 6 },
  ],
};

function chainOf(plans: readonly TablePlan[], family: string, name: string): readonly object[] {
  const chains = plans.find((plan) => plan.family === family)?.chains ?? [];
  return chains.find((chain) => chain.name === name)?.rules ?? assert.fail(name);
}

test("a node has one table for each family: queries of pods are redirected, packets from Docker's networks are not", () => {
  const plans = servingPlan(NODE);
  assert.deepEqual(
    plans.map(({ family, chains }) => [
      family,
      chains.map(({ name, hook, priority }) => `${name} ${hook} ${priority}`),
    ]),
    ["ip", "ip6"].map((family) => [
      family,
      [
        "zone output -300",
        "query output -101",
        "reply postrouting -101",
        "pod-zone prerouting -300",
        "pod-query prerouting -101",
        "guard input -5",
      ],
    ]),
  );
  const passed = { match: { interface: 7 }, action: { kind: "accept" } };
  assert.deepEqual(chainOf(plans, "ip", "pod-query"), [
    passed,
    {
      match: { protocol: "udp", destination: GATEWAY, destinationPort: 53 },
      action: { kind: "dnat", address: DEDICATED, port: 3 },
    },
    {
      match: { protocol: "tcp", destination: GATEWAY, destinationPort: 53 },
      action: { kind: "dnat", address: DEDICATED, port: 4 },
    },
  ]);
  assert.deepEqual(chainOf(plans, "ip6", "pod-zone"), [
    passed,
    { match: { protocol: "udp", destination: "fd00::1", destinationPort: 53 }, action: ZONE },
    { match: { protocol: "tcp", destination: "fd00::1", destinationPort: 53 }, action: ZONE },
  ]);
});

test("in a node only redirected packets reach our ports; with 127.0.0.0/8 open, the guard covers all of it", () => {
  const guards = chainOf(servingPlan(NODE), "ip", "guard");
  const guard = (destination: string, protocol: string, destinationPort: number): object => ({
    match: { isFromOutside: true, protocol, destination, destinationPort, isNotDnat: true },
    action: { kind: "drop" },
  });
  assert.deepEqual(guards, [
    guard(OURS, "udp", 1),
    guard(OURS, "tcp", 2),
    guard(DEDICATED, "udp", 3),
    guard(DEDICATED, "tcp", 4),
  ]);
  const open = servingPlan({ ...NODE, capture: { ...NODE.capture, guardsLoopback: true } });
  assert.deepEqual(chainOf(open, "ip", "guard"), [
    { match: { isFromOutside: true, isToLoopback: true, isNotDnat: true }, action: { kind: "drop" } },
  ]);
});

test("a reply without a conntrack entry leaves from the address that the pods queried", () => {
  const rescued = chainOf(servingPlan(NODE), "ip", "reply").slice(2);
  assert.deepEqual(rescued, [
    {
      match: { protocol: "udp", source: DEDICATED, sourcePort: 3 },
      action: { kind: "snat", address: GATEWAY, port: 53 },
    },
    {
      match: { protocol: "tcp", source: DEDICATED, sourcePort: 4 },
      action: { kind: "snat", address: GATEWAY, port: 53 },
    },
  ]);
});

test("on trial queries of pods are not redirected, but our ports are guarded", () => {
  const trial = trialPlan(NODE);
  assert.deepEqual(chainOf(trial, "ip", "pod-query"), [{ match: { interface: 7 }, action: { kind: "accept" } }]);
  assert.deepEqual(chainOf(trial, "ip", "guard"), chainOf(servingPlan(NODE), "ip", "guard"));
});

test("on the host only UDP queries for our names are redirected, and spared groups pass by", () => {
  const name = Buffer.from("\x06docker\0", "latin1");
  const reverse = Buffer.from("\x0218\x03172\x07in-addr\x04arpa\0", "latin1");
  const spared = { id: 42n, level: 2 };
  const redirects = [{ bind: OURS, fromInside: ["192.0.2.53"], fromPods: [] }];
  const host = { names: [name], reverseNames: [reverse], spared: [spared] };
  const { chains } = one(
    servingPlan({ ...INPUT, capture: { ...CONTAINER_CAPTURE, redirects, guardsPorts: true, host } }),
  );
  const match = { protocol: "udp", destination: "192.0.2.53", destinationPort: 53 };
  const pass = { match: { protocol: "udp", destinationPort: 53, controlGroup: spared }, action: { kind: "accept" } };
  const noReverse = {
    match: { protocol: "udp", destinationPort: 53, lacksBytes: Buffer.from("\x04arpa\0", "latin1") },
    action: { kind: "accept" },
  };
  const rules = (action: object): object[] => [
    { match: { ...match, bytes: name }, action },
    noReverse,
    { match: { ...match, bytes: reverse }, action },
  ];
  const [zone, query, , guard] = chains;
  assert.deepEqual(zone?.rules, [PASSTHROUGH, pass, ...ZONE_OF_REPLIES, ...rules(ZONE)]);
  assert.deepEqual(query?.rules, [PASSTHROUGH, pass, ...rules({ kind: "dnat", address: OURS, port: 40_001 })]);
  assert.deepEqual([guard?.name, guard?.rules.length], ["guard", 2]);
});
