// What the doctor says about gossip: that it has all that this machine and its manager know, what it lacks, or that nothing
// can be read.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Finding } from "../../../src/base/model/finding.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import type { TaskJson } from "../../../src/features/swarm/engine-lists.ts";
import { swarmFindings } from "../../../src/features/swarm/report.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../support/scripted/builders.ts";
import { apiThat } from "./api.ts";

const NOW = Date.parse("2026-01-01T00:01:00Z");
const LONG_AGO = "2026-01-01T00:00:00Z";
const JUST_NOW = "2026-01-01T00:00:50Z";
const MESH = aNetworkFact({ name: "mesh", scope: "swarm", swarm: { isIngress: false, subnets: [] } });

function own(parts: Partial<ContainerFact> = {}): ContainerFact {
  const endpoint = anEndpoint({ networkName: "mesh", networkId: MESH.id, ipv4: "10.0.1.7" });
  return aContainer({ name: "own", startedAt: LONG_AGO, endpoints: [endpoint], ...parts });
}

function aTask(ID: string, address: string, Timestamp: string, State = "running"): TaskJson {
  const attachments = [{ Network: { ID: MESH.id }, Addresses: [`${address}/24`] }];
  return { ID, DesiredState: "running", Status: { State, Timestamp }, NetworksAttachments: attachments };
}

// What can be reached of managers, and which there are.
interface Around {
  readonly managers?: readonly string[];
  readonly reached?: readonly string[];
  readonly hosts?: readonly string[];
}

async function findings(
  facts: ContainerFact[],
  known: string[],
  tasks?: TaskJson[],
  { managers = [], reached = [], hosts = [] }: Around = {},
): Promise<readonly Finding[]> {
  const listed = known.map((EndpointIP, at) => ({
    Name: `web.${at}`,
    EndpointIP,
    Info: { "Host IP": hosts[at] ?? "192.0.2.1" },
  }));
  const api = apiThat(({ path }) => {
    if (path === "/info") return { Swarm: { RemoteManagers: managers.map((each) => ({ Addr: `${each}:2377` })) } };
    return path === "/tasks?" ? tasks : { Services: { web: { VIP: "10.0.1.2", Tasks: listed } } };
  });
  const isReached = async (address: string, port: number): Promise<boolean> =>
    await Promise.resolve(port === 7946 && reached.includes(address));
  return await swarmFindings({ facts, networkOf: (id) => (id === MESH.id ? MESH : undefined), api, isReached }, NOW);
}

test("without containers on swarm networks there is nothing to say", async () => {
  assert.deepEqual(await findings([aContainer()], []), []);
});

test("gossip that has everything is well, on a worker and on a manager", async () => {
  const [worker] = await findings([own()], ["10.0.1.7"]);
  assert.equal(worker?.state, "ok");
  assert.match(worker.detail, /"mesh": 1 service and 1 task or container on 1 machine, with all of this machine's/);
  const [manager] = await findings([own()], ["10.0.1.7", "10.0.1.8"], [aTask("t1", "10.0.1.8", LONG_AGO)]);
  assert.equal(manager?.state, "ok");
  assert.match(manager.detail, /as the manager has them/);
});

test("what gossip lacks is named, unless it is too new, starting or not healthy", async () => {
  const [lost] = await findings([own()], []);
  assert.equal(lost?.state, "warning");
  assert.match(lost.detail, /the machines disagree, gossip here lacks own \(10\.0\.1\.7\)$/);
  assert.match(lost.remedy ?? "", /7946/);
  const tasks = [
    aTask("t1", "10.0.1.8", LONG_AGO),
    aTask("t2", "10.0.1.9", JUST_NOW),
    aTask("t3", "10.0.1.10", LONG_AGO, "starting"),
  ];
  const [other] = await findings([own()], ["10.0.1.7"], tasks);
  assert.match(other?.detail ?? "", /lacks task t1 \(10\.0\.1\.8\)$/);
  for (const parts of [{ startedAt: JUST_NOW }, { health: "unhealthy" }, { health: "starting" }] as const)
    assert.equal((await findings([own(parts)], []))[0]?.state, "ok");
  const many = Array.from({ length: 5 }, (_, at) => aTask(`t${at}`, `10.0.1.${at + 20}`, LONG_AGO));
  assert.match((await findings([own()], ["10.0.1.7"], many))[0]?.detail ?? "", /and 2 more$/);
});

test("a worker that knows only itself: gossip that does not reach the managers is the reason", async () => {
  const around = { managers: ["192.0.2.8", "192.0.2.9"], reached: ["192.0.2.9"] };
  const [cut] = await findings([own()], ["10.0.1.7"], undefined, around);
  assert.equal(cut?.state, "warning");
  assert.match(cut.detail, /only this machine is known here, and gossip does not reach 192\.0\.2\.8 at 7946\/tcp/);
  assert.match(cut.remedy ?? "", /4789\/udp/);
  const [well] = await findings([own()], ["10.0.1.7"], undefined, { ...around, reached: around.managers });
  assert.equal(well?.state, "ok");
  assert.match(well.detail, /only a manager knows$/);
  const hosts = ["192.0.2.1", "192.0.2.2"];
  const [two] = await findings([own()], ["10.0.1.7", "10.0.1.8"], undefined, { ...around, hosts });
  assert.match(two?.detail ?? "", /on 2 machines, with all of this machine's$/);
});

test("an engine that cannot list is no verdict", async () => {
  const api = { ...apiThat(() => undefined), readOne: async () => await Promise.reject(new Error("too long")) };
  const isReached = async (): Promise<boolean> => await Promise.resolve(true);
  const [found] = await swarmFindings({ facts: [own()], networkOf: () => MESH, api, isReached }, NOW);
  assert.deepEqual([found?.state, found?.detail], ["unknown", "too long"]);
});
