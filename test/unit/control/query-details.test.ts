// Proves that queries get the containers behind their addresses and the causes of their failures, within limits.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { SwarmPlace } from "../../../src/base/model/swarm-place.ts";
import type { QueryReport } from "../../../src/api/queries.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { LOCAL_ONLY_DEFAULTS } from "../../../src/base/model/upstream-policy.ts";
import { ForwardingRules } from "../../../src/query/policy/forwarding-rules.ts";
import { QueryDetails } from "../../../src/control/reports/query-details.ts";
import type { SituationPorts } from "../../../src/control/situation/situations.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { NO_FEATURE_FIELDS } from "../../../src/control/situation/ports.ts";
import { aReport } from "../support/query-reports.ts";

const web = on("web", anEndpoint({ networkName: "front", names: ["web"], ipv4: "10.0.0.2" }));
const db = on("db", anEndpoint({ networkName: "back", names: ["db"], ipv4: "10.0.1.3", ipv6: "fd00::3" }));
// Two networks with the same subnet.
const [left, right] = ["left", "right"].map((networkName) =>
  on(networkName, anEndpoint({ networkName, names: [networkName], ipv4: "10.9.0.2" })),
) as [ContainerFact, ContainerFact];
const guest = on("guest", anEndpoint({ networkName: "right", names: ["guest"], ipv4: "10.9.0.3" }));

function on(name: string, ...endpoints: ContainerFact["endpoints"]): ContainerFact {
  return aContainer({ id: `${name}-id`, name, endpoints });
}

const ELSEWHERE: SwarmPlace = {
  network: "right",
  service: "web",
  name: "web.1.abc",
  machine: "192.0.2.5",
  virtualAddress: null,
  tasks: 2,
  machines: 2,
};

const RULES = new ForwardingRules(DEFAULT_BEHAVIOUR, LOCAL_ONLY_DEFAULTS);

class Ports {
  stoppedCalls = 0;

  details(): QueryDetails {
    const facts = new Map([web, db, left, right, guest].map((fact) => [fact.id, fact]));
    const ports: SituationPorts = {
      containers: {
        facts,
        decisionOf: () => undefined,
        attachmentOf: () => undefined,
        clients: { collect: () => undefined, of: () => undefined, recentOf: () => undefined },
        viewOf: () => ({ names: [], upstreams: { routes: [], isNdotsSet: false } }),
        defaultBridge: () => "off",
        swarm: {
          placeOf: (container, address) => (container === guest && address === "10.9.0.77" ? ELSEWHERE : undefined),
          serviceCalled: () => undefined,
          aloneOn: () => undefined,
          names: () => [],
        },
        formerAddresses: () => [],
        formerNames: () => [],
        ofFeatures: NO_FEATURE_FIELDS,
        networks: async () => await Promise.resolve([]),
        stopped: async () => {
          this.stoppedCalls++;
          return await Promise.resolve([]);
        },
      },
      inside: { open: () => assert.fail("no query is sent"), resolvConfOf: () => undefined },
      resolver: () => ({ upstreamState: undefined, behaviour: DEFAULT_BEHAVIOUR, rules: RULES }),
      histories: { histories: () => [] },
    };
    return new QueryDetails(ports);
  }
}

async function detailsOf(query: Partial<QueryReport>, wantsCauses = false): Promise<QueryReport> {
  const [detailed = assert.fail()] = await new Ports().details().add([aReport(query)], wantsCauses);
  return detailed;
}

test("addresses have their containers, in any spelling; others have none", async () => {
  const { owners = [] } = await detailsOf({ addresses: ["10.0.1.3", "fd00:0::3", "192.0.2.1"] });
  assert.deepEqual(
    owners.map(({ address, container, network }) => [address, container, network]),
    [
      ["10.0.1.3", "db", "back"],
      ["fd00:0::3", "db", "back"],
    ],
  );
});

test("what another machine of a swarm has, on the networks of the container", async () => {
  const { owners = [] } = await detailsOf({ container: "guest", addresses: ["10.9.0.77"] });
  assert.deepEqual(
    owners.map(({ container, swarm }) => [container, swarm?.machine]),
    [["web.1.abc", "192.0.2.5"]],
  );
  assert.deepEqual((await detailsOf({ container: "left", addresses: ["10.9.0.77"] })).owners, []);
});

test("of networks with the same subnet, the client's own comes first", async () => {
  for (const [container, owner] of [
    ["guest", "right"],
    ["left", "left"],
  ] as const) {
    const { owners = [] } = await detailsOf({ container, addresses: ["10.9.0.2"] });
    assert.deepEqual(
      owners.map((each) => each.container),
      [owner],
    );
  }
});

test("failures have a cause if it is wanted, and only failures", async () => {
  const failed = { container: "web", name: "db", rcode: "NXDOMAIN", answers: 0 };
  assert.equal((await detailsOf(failed, true)).cause?.code, "other-network");
  assert.equal((await detailsOf(failed, false)).cause, undefined);
  assert.equal((await detailsOf({ container: "web", name: "db" }, true)).cause, undefined);
  assert.equal((await detailsOf({ container: "web", name: "x", type: "AAAA", answers: 0 }, true)).cause, undefined);
  assert.equal((await detailsOf({ ...failed, name: null }, true)).cause, null, "hidden");
  assert.equal((await detailsOf({ ...failed, container: "ended" }, true)).cause, null, "no longer running");
});

test("of a flood of different failures 64 get their cause, and the engine is asked once", async () => {
  const ports = new Ports();
  const flood = Array.from({ length: 5_000 }, (_, i) =>
    aReport({ container: "web", name: `n${i}`, rcode: "NXDOMAIN", answers: 0 }),
  );
  const detailed = await ports.details().add(flood, true);
  assert.equal(detailed.length, flood.length);
  assert.equal(detailed.filter(({ cause }) => cause !== null && cause !== undefined).length, 64);
  assert.equal(ports.stoppedCalls, 1);
});

test("without failures the engine is not asked", async () => {
  const ports = new Ports();
  await ports.details().add([aReport({ addresses: ["10.0.1.3"] })], true);
  assert.equal(ports.stoppedCalls, 0);
});
