// Proves the list of names: by network, as one container resolves them, of one project; and that an engine with very many
// names gets a bounded list, during which other work runs.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { splitLabels } from "../../../src/container/facts/labels.ts";
import type { ComposeFilter } from "../../../src/control/situation/address-owners.ts";
import { listNames } from "../../../src/control/reports/name-resolver.ts";
import type { ControlPorts } from "../../../src/control/situation/ports.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../support/scripted/builders.ts";
import { composed, portsOf } from "../support/control-ports.ts";
import { rowsOf } from "../support/listed-names.ts";

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

test("the name of the engine's host is listed where settings allow it", async () => {
  const prepare = (directory: Directory): void => {
    directory.names.engineHost.setGateway({ ipv4: "172.17.0.1", ipv6: undefined });
  };
  const name = "host.docker.internal";
  const ports = portsOf([WEB, API], [], { settings: { hostName: "gateway" }, prepare });
  assert.deepEqual(await rowsOf(ports, WEB, name), [
    "host.docker.internal: resolves from setting host-docker-internal to 172.17.0.1",
  ]);
  assert.deepEqual(await rowsOf(portsOf([WEB, API]), WEB, name), []);
});

test("a second container with a name is shadowed by the first network, or by the asking container's project", async () => {
  const far = composed("late", "api", "z", 7);
  const both = {
    ...WEB,
    endpoints: [...WEB.endpoints, anEndpoint({ networkId: "z", networkName: "z", names: ["x"] })],
  };
  const ports = portsOf([both, API, far], [], {
    prepare: (directory) => directory.putNetwork(aNetworkFact({ id: "z", name: "z" })),
  });
  assert.deepEqual(await rowsOf(ports, both, "api"), [
    "api: resolves from docker on a to 10.0.0.3+shop-api-1",
    "api: shadowed network a from docker on z to 10.0.0.7+late-api-1",
  ]);
  const stranger = composed("other", "api", "a", 8);
  assert.deepEqual(await rowsOf(portsOf([WEB, API, stranger]), WEB, "api"), [
    "api: resolves from docker on a to 10.0.0.3+shop-api-1",
    "api: shadowed its own project from docker on a to 10.0.0.8+other-api-1",
  ]);
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
    ...splitLabels({ "com.docker.compose.project": "shop", "com.docker.compose.service": "job" }, {}),
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
