// Proves the list of names: by network, as one container resolves them, of one project; and that an engine with very many
// names gets a bounded list, during which other work runs.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../src/container/registry/fact.ts";
import type { StoppedContainer } from "../../../src/control/causes/known-container.ts";
import type { ComposeFilter } from "../../../src/control/compose-filter.ts";
import { listNames } from "../../../src/control/list-names.ts";
import type { ControlPorts } from "../../../src/control/ports.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../support/scripted/builders.ts";

const COMPOSE = "com.docker.compose.";

/** A container of a project with its service as an alias, on networks with one letter each. */
function composed(project: string, service: string, networks: string, last: number): ContainerFact {
  const name = `${project}-${service}-1`;
  return aContainer({
    id: name.padEnd(64, "0"),
    name,
    labels: { [`${COMPOSE}project`]: project, [`${COMPOSE}service`]: service },
    imageLabels: { labels: {}, source: "known" },
    endpoints: [...networks].map((network, index) =>
      anEndpoint({ networkId: network, networkName: network, names: [name, service], ipv4: `10.${index}.0.${last}` }),
    ),
  });
}

function portsOf(
  facts: readonly ContainerFact[],
  stopped: readonly StoppedContainer[] = [],
  zones: readonly string[] = [],
): ControlPorts {
  const directory = new Directory({ serversMax: 3, ownAddress: "127.0.0.11" });
  directory.setZones(zones);
  for (const id of "abcd") directory.putNetwork(aNetworkFact({ id, name: id }));
  for (const fact of facts) directory.putContainer(fact);
  const containers = {
    facts: directory.containers,
    viewOf: (fact: ContainerFact) => directory.viewOf(fact),
    stopped: async () => await Promise.resolve(stopped),
    defaultBridge: () => "off",
    formerAddresses: () => [],
  };
  return { containers, histories: { histories: () => [] } } as unknown as ControlPorts;
}

async function listed(ports: ControlPorts, fact?: ContainerFact, filter?: ComposeFilter): Promise<string[]> {
  const { names } = await listNames(ports, fact, filter);
  return names.map(({ name, network, state, addresses }) => [name, network, state, addresses.join("+")].join(" "));
}

const WEB = composed("shop", "web", "a", 2);
const API = composed("shop", "api", "ab", 3);
const DB = composed("shop", "db", "b", 4);
const OTHER = composed("other", "db", "c", 5);

test("all names of the engine, by network", async () => {
  assert.deepEqual(await listed(portsOf([API, OTHER])), [
    "api a resolves 10.0.0.3",
    "api b resolves 10.1.0.3",
    "db c resolves 10.0.0.5",
    "other-db-1 c resolves 10.0.0.5",
    "shop-api-1 a resolves 10.0.0.3",
    "shop-api-1 b resolves 10.1.0.3",
  ]);
});

test("a container resolves a name on the first of its networks that has it, and none of other networks", async () => {
  const ports = portsOf([WEB, API, DB, OTHER]);
  assert.deepEqual(await listed(ports, WEB), [
    "api a resolves 10.0.0.3",
    "db b other-network 10.0.0.4",
    "db c other-network 10.0.0.5",
    "other-db-1 c other-network 10.0.0.5",
    "shop-api-1 a resolves 10.0.0.3",
    "shop-db-1 b other-network 10.0.0.4",
    "shop-web-1 a resolves 10.0.0.2",
    "web a resolves 10.0.0.2",
  ]);
  const { names, networks } = await listNames(ports, API, undefined);
  assert.deepEqual(networks, ["a", "b"]);
  assert.equal(names.find(({ name, network }) => name === "db" && network === "b")?.state, "resolves");
});

test("names of a zone are listed with their source, and those of other projects are left out where one is selected", async () => {
  const zoned = async (filter?: ComposeFilter): Promise<string[]> => {
    const { names } = await listNames(portsOf([WEB, API, OTHER], [], ["box.test"]), WEB, filter);
    return names.flatMap(({ name, network, source, addresses, owners }) =>
      source === undefined ? [] : [`${name} ${network} ${source} ${addresses.join("+")} ${owners[0]?.container}`],
    );
  };
  const all = await zoned();
  assert.ok(all.includes("api.shop.svc.box.test null zone box.test 10.0.0.3 shop-api-1"), all.join("; "));
  assert.ok(
    all.every((line) => !line.includes(".other.")),
    "on no network of this container",
  );
  assert.deepEqual(await zoned({ acceptsPlace: ({ project }) => project === "other", acceptsId: () => true }), []);
});

test("an alias of a link resolves to its target, which owns the address", async () => {
  const [endpoint] = WEB.endpoints;
  const linked = { ...WEB, endpoints: endpoint === undefined ? [] : [{ ...endpoint, links: ["shop-api-1:backend"] }] };
  const { names } = await listNames(portsOf([linked, API]), linked, undefined);
  const backend = names.find(({ name }) => name === "backend");
  assert.deepEqual([backend?.state, backend?.addresses], ["resolves", ["10.0.0.3"]]);
  assert.deepEqual(
    backend?.owners.map(({ container }) => container),
    ["shop-api-1"],
  );
});

test("containers that have stopped, or are on no network with names, are listed with their state", async () => {
  const ended = {
    id: "e".repeat(64),
    name: "shop-job-1",
    labels: { [`${COMPOSE}project`]: "shop", [`${COMPOSE}service`]: "job" },
    networks: [{ name: "a", aliases: [] }],
    state: "exited",
    exitCode: 1,
    atMs: 0,
  };
  const plain = aContainer({ id: "f".repeat(64), name: "plain", endpoints: [] });
  assert.deepEqual(await listed(portsOf([plain], [ended])), [
    "job a not-running ",
    "plain  no-network ",
    "shop-job-1 a not-running ",
  ]);
});

test("only names of one project", async () => {
  const filter: ComposeFilter = { acceptsPlace: ({ project }) => project === "other", acceptsId: () => true };
  const names = await listed(portsOf([DB, OTHER]), undefined, filter);
  assert.deepEqual(names, ["db c resolves 10.0.0.5", "other-db-1 c resolves 10.0.0.5"]);
});

test("very many names are a bounded list, and pending work runs meanwhile", async () => {
  const many = Array.from({ length: 3_000 }, (_, index) => composed("p", `s${index}`, "a", 1 + (index % 250)));
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const { names, omitted } = await listNames(portsOf(many), many[0], undefined).finally(() => (isDone = true));
  assert.equal(names.length, LIMITS.namesListed);
  assert.equal(omitted, 6_000 - LIMITS.namesListed);
  assert.ok(turns >= 10, `${turns} turns`);
});
