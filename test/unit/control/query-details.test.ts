// Proves that queries get the containers behind their addresses and the causes of their failures, within limits.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { QueryReport } from "../../../src/api/queries.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { LOCAL_ONLY_DEFAULTS } from "../../../src/base/model/upstream-policy.ts";
import { ForwardingRules } from "../../../src/query/lookup/forwarding-rules.ts";
import { QueryDetails } from "../../../src/control/reports/query-details.ts";
import type { SituationPorts } from "../../../src/control/situation/situations.ts";
import { aContainer, aRoute, anEndpoint } from "../../support/scripted/builders.ts";
import { type FailedName, NO_FEATURE_FIELDS } from "../../../src/control/situation/ports.ts";
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

const ELSEWHERE = { address: "10.9.0.77", container: "web.1.abc", network: "right", project: null, service: "web" };

const SERVER = { from: "host", address: "192.0.2.53", port: 53 } as const;
const RULES = new ForwardingRules(DEFAULT_BEHAVIOUR, LOCAL_ONLY_DEFAULTS);

class Ports {
  stoppedCalls = 0;
  // What features are told of.
  readonly failed: FailedName[] = [];

  details(): QueryDetails {
    const facts = new Map([web, db, left, right, guest].map((fact) => [fact.id, fact]));
    const ports: SituationPorts = {
      containers: {
        facts,
        decisionOf: () => undefined,
        attachmentOf: () => undefined,
        clients: { collect: () => undefined, of: () => undefined, recentOf: () => undefined },
        viewOf: () => ({ names: [], upstreams: { routes: [aRoute("", [SERVER])], isNdotsSet: false } }),
        defaultBridge: () => "off",
        elsewhere: {
          ownerOf: (container, address) =>
            container === guest && address === ELSEWHERE.address ? ELSEWHERE : undefined,
          allNames: () => [],
        },
        formerAddresses: () => [],
        formerNames: () => [],
        ofFeatures: { ...NO_FEATURE_FIELDS, cause: (failed) => void this.failed.push(failed) },
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

test("what another machine has, on the networks of the container", async () => {
  assert.deepEqual((await detailsOf({ container: "guest", addresses: ["10.9.0.77"] })).owners, [ELSEWHERE]);
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

test("features are told of a failing name, of whom it is, and whether servers were asked for it", async () => {
  const ports = new Ports();
  const failing = (name: string): QueryReport => aReport({ container: "web", name, rcode: "NXDOMAIN", answers: 0 });
  await ports.details().add([failing("Far"), failing("www.example.com"), failing("hidden.onion")], true);
  assert.deepEqual(
    ports.failed.map(({ name, failure, client, isKept, route }) => [name, failure, client.name, isKept, route]),
    [
      ["Far", "NXDOMAIN", "web", false, { domain: ".", by: undefined }],
      ["www.example.com", "NXDOMAIN", "web", false, { domain: ".", by: undefined }],
      ["hidden.onion", "NXDOMAIN", "web", true, undefined],
    ],
  );
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
